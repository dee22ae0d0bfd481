// ONNX models as bytes, without anything of the library: for tests that stand outside of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace small_onnx {

inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}
inline std::string number(unsigned tag, std::uint64_t value) {
  return varint(tag << 3) + varint(value);
}
inline std::string text(unsigned tag, const std::string& bytes) {
  return varint(tag << 3 | 2) + varint(bytes.size()) + bytes;
}

// ValueInfoProto of floats; a dimension is a number or a name.
inline std::string value(const std::string& name, const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& dim : dims) {
    const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
    shape += text(1, is_number ? number(1, std::stoull(dim)) : text(2, dim));
  }
  return text(1, name) + text(2, text(1, number(1, 1) + text(2, shape)));
}
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::string& output) {
  std::string bytes;
  for (const std::string& input : inputs) bytes += text(1, input);
  return bytes + text(2, output) + text(3, "node of " + output) + text(4, op);
}
// `more`: further fields of the model.
inline std::string model(const std::vector<std::string>& inputs,
                         const std::vector<std::string>& nodes,
                         const std::vector<std::string>& outputs, const std::string& more = "") {
  std::string graph;
  for (const std::string& one : nodes) graph += text(1, one);
  graph += text(2, "small");
  for (const std::string& one : inputs) graph += text(11, one);
  for (const std::string& one : outputs) graph += text(12, text(1, one));
  return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17)) + more;
}

// y = a + b of f32[4, length].
inline std::string bounded_add() {
  return model({value("a", {"4", "length"}), value("b", {"4", "length"})},
               {node("Add", {"a", "b"}, "y")}, {"y"});
}

}  // namespace small_onnx
