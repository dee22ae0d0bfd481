// Builds ONNX models in tests. Every part is the bytes of a message, so that tests can also write
// models that no exporter would.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "hlo/text.h"
#include "hlo/verify.h"
#include "import/onnx.h"

namespace heddle::import::testing {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using Strings = std::vector<std::string>;

enum DataType : int32_t {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9
};

// A message's bytes; fields are added in order.
class Message {
 public:
  Message& text(uint32_t tag, const std::string& value) {
    protozero::pbf_writer(bytes_).add_string(tag, value);
    return *this;
  }
  Message& number(uint32_t tag, int64_t value) {
    protozero::pbf_writer(bytes_).add_int64(tag, value);
    return *this;
  }
  Message& real(uint32_t tag, float value) {
    protozero::pbf_writer(bytes_).add_float(tag, value);
    return *this;
  }
  Message& message(uint32_t tag, const Message& value) { return text(tag, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// TensorProto with raw_data.
template <typename T>
Message tensor(const std::string& name, DataType type, const Ints& dims,
               const std::vector<T>& values) {
  Message message;
  for (int64_t dim : dims) message.number(1, dim);
  message.number(2, type).text(8, name);
  std::string raw(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return message.text(9, raw);
}

inline Message ints_tensor(const std::string& name, const std::vector<int64_t>& values) {
  return tensor<int64_t>(name, kInt64, {static_cast<int64_t>(values.size())}, values);
}

// AttributeProto.
inline Message attr(const std::string& name, int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message attr(const std::string& name, double value) {
  return Message().text(1, name).real(2, static_cast<float>(value)).number(20, 1);
}
inline Message attr(const std::string& name, const std::string& value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}
inline Message attr(const std::string& name, const Ints& values) {
  Message message;
  message.text(1, name);
  for (int64_t value : values) message.number(8, value);
  return message.number(20, 7);
}
inline Message attr(const std::string& name, const std::vector<float>& values) {
  Message message;
  message.text(1, name);
  for (float value : values) message.real(7, value);
  return message.number(20, 6);
}
inline Message attr(const std::string& name, const Strings& values) {
  Message message;
  message.text(1, name);
  for (const std::string& value : values) message.text(9, value);
  return message.number(20, 8);
}
inline Message tensor_attr(const std::string& name, const Message& value) {
  return Message().text(1, name).message(5, value).number(20, 4);
}
inline Message graph_attr(const std::string& name, const Message& value) {
  return Message().text(1, name).message(6, value).number(20, 5);
}

inline Message node(const std::string& op, const Strings& inputs, const Strings& outputs,
                    const std::vector<Message>& attributes = {}, const std::string& domain = "",
                    const std::string& name = "") {
  Message message;
  for (const std::string& input : inputs) message.text(1, input);
  for (const std::string& output : outputs) message.text(2, output);
  message.text(3, name).text(4, op);
  for (const Message& attribute : attributes) message.message(5, attribute);
  return message.text(7, domain);
}

// ValueInfoProto; a dimension that is not a number is a symbol, "" is unknown.
inline Message value(const std::string& name, DataType type, const Strings& dims) {
  Message shape;
  for (const std::string& dim : dims) {
    Message entry;
    const bool number = !dim.empty() && dim.find_first_not_of("-0123456789") == std::string::npos;
    if (number) {
      entry.number(1, std::stoll(dim));
    } else if (!dim.empty()) {
      entry.text(2, dim);
    }
    shape.message(1, entry);
  }
  const Message tensor_type = Message().number(1, type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor_type));
}

struct Model {
  std::vector<Message> inputs, nodes, constants, functions;
  Strings outputs;
  std::vector<Message> typed_outputs;  // after them
  int64_t opset = 17;
  std::vector<std::pair<std::string, int64_t>> other_opsets;

  Message graph() const {
    Message message;
    for (const Message& entry : nodes) message.message(1, entry);
    message.text(2, "test");
    for (const Message& entry : constants) message.message(5, entry);
    for (const Message& entry : inputs) message.message(11, entry);
    for (const std::string& entry : outputs) message.message(12, Message().text(1, entry));
    for (const Message& entry : typed_outputs) message.message(12, entry);
    return message;
  }
  std::string bytes() const {
    Message message;
    message.number(1, 8).message(7, graph()).message(8, Message().text(1, "").number(2, opset));
    for (const auto& [domain, version] : other_opsets)
      message.message(8, Message().text(1, domain).number(2, version));
    for (const Message& function : functions) message.message(25, function);
    return message.bytes();
  }
  Result<Imported> import(const Options& options = {}) const {
    return import_onnx_bytes(bytes(), "", options);
  }
};

// One node over float inputs of these shapes ("2x3"), with constants as additional inputs.
inline Model one_node(const std::string& op, const std::vector<Strings>& shapes,
                      const std::vector<Message>& attributes = {},
                      const std::vector<Ints>& constants = {}, int64_t opset = 17) {
  Model model;
  Strings names;
  for (const Strings& shape : shapes) {
    names.push_back("x" + std::to_string(names.size()));
    model.inputs.push_back(value(names.back(), kFloat, shape));
  }
  for (const Ints& constant : constants) {
    names.push_back("c" + std::to_string(names.size()));
    model.constants.push_back(ints_tensor(names.back(), constant));
  }
  model.nodes.push_back(node(op, names, {"y"}, attributes, "", "it"));
  model.outputs = {"y"};
  model.opset = opset;
  return model;
}

inline std::string error_of(const Result<Imported>& result) {
  return result ? "" : result.error().message;
}

inline Imported imported(Result<Imported> result) {
  EXPECT_TRUE(result) << error_of(result);
  if (!result) std::abort();
  const Status verified = hlo::verify(*result->module);
  EXPECT_TRUE(verified) << (verified ? "" : verified.error().message);
  return std::move(*result);
}

// The shape of output i.
inline std::string shape_of(const Imported& result, size_t i = 0) {
  return to_string(result.module->entry()->root()->operand(i)->shape());
}

// Output i, which must have been folded to a constant.
inline std::vector<double> folded(const Imported& result, size_t i = 0) {
  const Instr* root = result.module->entry()->root()->operand(i);
  EXPECT_TRUE(root->is(Opcode::constant)) << hlo::to_string(*result.module);
  std::vector<double> values;
  if (!root->is(Opcode::constant)) return values;
  for (int64_t k = 0; k < root->literal().elems(); ++k)
    values.push_back(root->literal().get_f64(k));
  return values;
}

inline int64_t count(const Imported& result, Opcode opcode) {
  int64_t n = 0;
  for (const Instr* instr : result.module->entry()->instrs()) n += instr->is(opcode) ? 1 : 0;
  return n;
}

inline const Instr* find(const Imported& result, Opcode opcode) {
  for (const Instr* instr : result.module->entry()->instrs()) {
    if (instr->is(opcode)) return instr;
  }
  ADD_FAILURE() << "no " << hlo::opcode_text(opcode) << " in\n" << hlo::to_string(*result.module);
  std::abort();
}

}  // namespace heddle::import::testing
