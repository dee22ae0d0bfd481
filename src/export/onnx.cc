#include "export/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "export/onnx_nodes.h"
#include "export/proto_writer.h"
#include "hlo/leaves.h"
#include "hlo/names.h"
#include "hlo/text.h"
#include "import/failure.h"
#include "import/onnx_tensor.h"

namespace heddle::exports {
namespace {

using hlo::Computation;
using hlo::Instr;
using hlo::Opcode;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

constexpr std::string_view kDomain = "ai.heddle";
constexpr int64_t kIrVersion = 10, kOpset = 21;
constexpr size_t kMostNames = 8;  // of the model's nodes, in a doc_string

int64_t number_of(Type type) {
  if (const std::optional<int64_t> number = import::data_type_number(type)) return *number;
  import::fail("{} is no type of ONNX", tensor::type_name(type));
}

// TensorProto; elements narrower than a byte are packed, lowest bits first.
void put_tensor(ProtoWriter& out, const Literal& value, const std::string& name) {
  if (value.shape().rank() > 0) out.put_packed(1, value.shape().extents());
  out.put_number(2, number_of(value.type()));
  if (!name.empty()) out.put_bytes(8, name);
  const int bits = value.type() == Type::pred ? 8 : tensor::type_bits(value.type());
  if (bits >= 8) {
    out.put_bytes(9, {static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes())});
    return;
  }
  std::string packed(static_cast<size_t>((value.elems() * bits + 7) / 8), '\0');
  for (int64_t i = 0; i < value.elems(); ++i) {
    const uint64_t element = value.get_bits(i) & ((uint64_t{1} << bits) - 1);
    char& byte = packed[static_cast<size_t>(i * bits / 8)];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | element << (i * bits % 8));
  }
  out.put_bytes(9, packed);
}

// ValueInfoProto.
void put_value_info(ProtoWriter& out, const std::string& name, const Shape& shape) {
  if (!shape.is_array()) import::fail("{}: {} is no tensor", name, tensor::to_string(shape));
  out.put_bytes(1, name);
  out.put_message(2, [&](ProtoWriter& type) {
    type.put_message(1, [&](ProtoWriter& tensor) {
      tensor.put_number(1, number_of(shape.type()));
      tensor.put_message(2, [&](ProtoWriter& dims) {
        for (const tensor::Dim& dim : shape.dims())
          dims.put_message(1, [&](ProtoWriter& m) { m.put_number(1, dim.size); });
      });
    });
  });
}

void put_attribute(ProtoWriter& out, const std::string& name, int64_t type, auto write) {
  out.put_message(5, [&](ProtoWriter& m) {
    m.put_bytes(1, name);
    write(m);
    m.put_number(20, type);
  });
}

void put_node(ProtoWriter& out, const OnnxNode& node, std::string_view name, std::string_view doc) {
  constexpr int64_t kInt = 2, kString = 3, kInts = 7;
  for (const std::string& input : node.inputs) out.put_bytes(1, input);
  for (const std::string& output : node.outputs) out.put_bytes(2, output);
  out.put_bytes(3, name);
  out.put_bytes(4, node.op_type);
  for (const auto& [key, value] : node.ints)
    put_attribute(out, key, kInt, [&](ProtoWriter& m) { m.put_number(3, value); });
  for (const auto& [key, values] : node.lists)
    put_attribute(out, key, kInts, [&](ProtoWriter& m) {
      for (const int64_t value : values) m.put_number(8, value);
    });
  for (const auto& [key, value] : node.strings)
    put_attribute(out, key, kString, [&](ProtoWriter& m) { m.put_bytes(4, value); });
  out.bytes(6, doc);
  out.bytes(7, node.domain);
}

void put_opsets(ProtoWriter& out, int field) {
  out.put_message(field, [](ProtoWriter& m) {
    m.put_bytes(1, "");
    m.put_number(2, kOpset);
  });
  out.put_message(field, [](ProtoWriter& m) {
    m.put_bytes(1, kDomain);
    m.put_number(2, 1);
  });
}

// "get-dimension-size" as a node's type: "GetDimensionSize".
std::string type_of(Opcode opcode) {
  std::string out;
  bool capital = true;
  for (const char c : hlo::opcode_text(opcode)) {
    if (c == '-') {
      capital = true;
      continue;
    }
    out += capital && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    capital = false;
  }
  return out;
}

using Names = std::vector<std::string>;

// The nodes of one computation, as fields of a graph (node: 1) or of a function (node: 7).
class Body : public OnnxNodes {
 public:
  // `called`: names of functions, added if missing.
  Body(bool is_graph, std::unordered_map<const Computation*, std::string>* functions,
       std::vector<const Computation*>* called, int64_t* others)
      : is_graph_(is_graph), functions_(functions), called_(called), others_(others) {}

  std::string fresh(std::string_view name) override {
    std::string made = hlo::unique_name(taken_, next_suffix_, name);
    taken_.emplace(made, true);
    return made;
  }
  // In a graph an initializer; a function has nodes only.
  std::string constant(const Literal& value) override { return constant(value, fresh("constant")); }
  void add(OnnxNode node) override {
    const std::string name = node.outputs.empty() ? std::string(instr_->name()) : node.outputs[0];
    writer_.put_message(is_graph_ ? 1 : 7, [&](ProtoWriter& m) { put_node(m, node, name, doc_); });
  }
  int64_t type_number(Type type) const override { return number_of(type); }

  void write(const Computation& computation) {
    for (const Instr* parameter : computation.parameters())
      for (size_t i = 0, n = hlo::leaf_count(parameter->shape()); i < n; ++i)
        values_[parameter].push_back(fresh(parameter->name()));
    for (const Instr* instr : computation.instrs())
      if (!instr->is(Opcode::parameter)) values_[instr] = instruction(*instr);
  }
  const Names& values_of(const Instr* instr) const { return values_.at(instr); }
  ProtoWriter& writer() { return writer_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string constant(const Literal& value, const std::string& name) {
    if (is_graph_) {
      writer_.put_message(5, [&](ProtoWriter& m) { put_tensor(m, value, name); });
      return name;
    }
    writer_.put_message(7, [&](ProtoWriter& node) {
      node.put_bytes(2, name);
      node.put_bytes(3, name);
      node.put_bytes(4, "Constant");
      put_attribute(node, "value", 4, [&](ProtoWriter& m) {
        m.put_message(5, [&](ProtoWriter& tensor) { put_tensor(tensor, value, ""); });
      });
    });
    return name;
  }

  Names instruction(const Instr& instr) {
    instr_ = &instr;
    doc_ = instr.nodes().text(kMostNames);
    Names operands;
    for (const Instr* operand : instr.operands())
      for (const std::string& name : values_.at(operand)) operands.push_back(name);
    if (instr.is(Opcode::tuple)) return operands;
    if (instr.is(Opcode::get_tuple_element)) {
      const Shape& from = instr.operand(0)->shape();
      size_t begin = 0;
      for (int64_t i = 0; i < instr.tuple_index(); ++i)
        begin += hlo::leaf_count(from.elements()[static_cast<size_t>(i)]);
      const auto first = operands.begin() + static_cast<int64_t>(begin);
      return {first, first + static_cast<int64_t>(hlo::leaf_count(instr.shape()))};
    }
    if (instr.is(Opcode::constant) && instr.shape().is_array()) {
      if (instr.attrs_as<hlo::ConstantAttrs>().elided)
        import::fail("%{} (constant): its values were left out", instr.name());
      return {constant(instr.literal(), fresh(instr.name()))};
    }
    Names results;
    for (size_t i = 0, n = hlo::leaf_count(instr.shape()); i < n; ++i)
      results.push_back(fresh(instr.name()));
    const bool is_call =
        (instr.is(Opcode::fusion) || instr.is(Opcode::call) || instr.is(Opcode::custom_call)) &&
        !instr.called().empty();
    if (is_call) {
      add({function_of(instr.called()[0]), std::string(kDomain), operands, results, {}, {}, {}});
    } else if (!plain(instr, operands, results.empty() ? "" : results[0])) {
      ++*others_;
      OnnxNode node{type_of(instr.opcode()), std::string(kDomain), operands, results, {}, {}, {}};
      std::string text = hlo::attrs_to_string(instr);
      for (const Computation* each : instr.called())
        text += fmt::format("{}calls={}", text.empty() ? "" : ", ", each->name());
      if (!text.empty()) node.strings.emplace_back("hlo", text);
      add(std::move(node));
    }
    if (is_graph_) value_infos(instr, results);
    return results;
  }

  // Types of the values inside a graph, for viewers.
  void value_infos(const Instr& instr, const Names& results) {
    const std::vector<Shape> leaves = hlo::leaves_of(instr.shape());
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i].is_array())
        writer_.put_message(13, [&](ProtoWriter& m) { put_value_info(m, results[i], leaves[i]); });
  }

  std::string function_of(const Computation* computation) {
    auto [found, is_new] = functions_->try_emplace(computation, computation->name());
    if (is_new) called_->push_back(computation);
    return found->second;
  }

  bool is_graph_;
  std::string bytes_;
  ProtoWriter writer_{&bytes_};
  std::unordered_map<std::string, bool> taken_;
  std::unordered_map<std::string, int64_t> next_suffix_;
  std::unordered_map<const Instr*, Names> values_;
  std::unordered_map<const Computation*, std::string>* functions_;
  std::vector<const Computation*>* called_;
  int64_t* others_;
  const Instr* instr_ = nullptr;
  std::string doc_;
};

class Writer {
 public:
  std::string write(const hlo::Module& module) {
    std::string bytes;
    ProtoWriter out(&bytes);
    out.put_number(1, kIrVersion);
    out.put_bytes(2, "heddle");
    out.put_message(7, [&](ProtoWriter& m) { graph(m, module); });
    put_opsets(out, 8);
    for (size_t i = 0; i < called_.size(); ++i)
      out.put_message(25, [&](ProtoWriter& m) { function(m, *called_[i]); });
    return bytes;
  }
  int64_t others() const { return others_; }

 private:
  void graph(ProtoWriter& out, const hlo::Module& module) {
    const Computation& entry = *module.entry();
    Body body(true, &functions_, &called_, &others_);
    std::vector<Shape> leaves = hlo::leaves_of(entry.root()->shape());
    Names outputs;
    for (size_t i = 0; i < leaves.size(); ++i)
      outputs.push_back(body.fresh(fmt::format("out{}", i)));
    body.write(entry);
    const Names& root = body.values_of(entry.root());
    for (size_t i = 0; i < outputs.size(); ++i)
      body.add({"Identity", "", {root[i]}, {outputs[i]}, {}, {}, {}});
    out.put_bytes(2, module.name());
    out.put_raw(body.bytes());
    for (const Instr* parameter : entry.parameters()) {
      const std::vector<Shape> shapes = hlo::leaves_of(parameter->shape());
      for (size_t i = 0; i < shapes.size(); ++i)
        out.put_message(11, [&](ProtoWriter& m) {
          put_value_info(m, body.values_of(parameter)[i], shapes[i]);
        });
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      out.put_message(12, [&](ProtoWriter& m) { put_value_info(m, outputs[i], leaves[i]); });
  }

  void function(ProtoWriter& out, const Computation& computation) {
    Body body(false, &functions_, &called_, &others_);
    body.write(computation);
    // Each output gets a name of its own.
    Names outputs;
    for (const std::string& value : body.values_of(computation.root())) {
      outputs.push_back(body.fresh("result"));
      body.add({"Identity", "", {value}, {outputs.back()}, {}, {}, {}});
    }
    out.put_bytes(1, functions_.at(&computation));
    for (const Instr* parameter : computation.parameters())
      for (const std::string& name : body.values_of(parameter)) out.put_bytes(4, name);
    for (const std::string& name : outputs) out.put_bytes(5, name);
    out.put_raw(body.bytes());
    put_opsets(out, 9);
    out.put_bytes(10, kDomain);
  }

  std::unordered_map<const Computation*, std::string> functions_;
  std::vector<const Computation*> called_;
  int64_t others_ = 0;
};

}  // namespace

Result<std::string> to_onnx(const hlo::Module& module, std::vector<std::string>* notes) {
  try {
    Writer writer;
    std::string bytes = writer.write(module);
    if (bytes.size() > INT32_MAX)
      return user_error("the model has {} bytes, an ONNX file at most 2 GiB", bytes.size());
    if (writer.others() > 0)
      notes->push_back(fmt::format(
          "{} nodes have no equal in ONNX and are of the domain {}: to be seen, not run",
          writer.others(), kDomain));
    return bytes;
  } catch (const import::Failure& failure) {
    return tl::unexpected<Error>(failure.error);
  }
}

}  // namespace heddle::exports
