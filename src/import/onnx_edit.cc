#include "import/onnx_edit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "import/failure.h"
#include "import/onnx.h"
#include "import/onnx_tensor.h"

namespace heddle::import {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using tensor::Literal;
using tensor::Type;

// Field numbers of onnx.proto.
constexpr uint32_t kModelGraph = 7, kModelOpset = 8;
constexpr uint32_t kGraphNode = 1, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4,
                   kNodeAttribute = 5, kNodeDomain = 7;
constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;
constexpr int64_t kMostNodes = 2'000'000;
constexpr int64_t kLarge = 1024;   // bytes of a tensor from which it goes to a separate file
constexpr size_t kAligned = 4096;  // page alignment, for mapping

void copy_field(pbf_reader& in, pbf_writer& out) {
  const protozero::pbf_tag_type tag = in.tag();  // not available after the value is read
  switch (in.wire_type()) {
    case pbf_wire_type::varint:
      return out.add_uint64(tag, in.get_uint64());
    case pbf_wire_type::fixed64:
      return out.add_fixed64(tag, in.get_fixed64());
    case pbf_wire_type::fixed32:
      return out.add_fixed32(tag, in.get_fixed32());
    default: {
      const auto view = in.get_view();
      return out.add_bytes(tag, view.data(), view.size());
    }
  }
}

// The types that can be written; other tensors stay unchanged.
constexpr std::pair<Type, int64_t> kWritten[] = {
    {Type::f32, 1}, {Type::u8, 2}, {Type::s8, 3}, {Type::s32, 6}, {Type::s64, 7}};

int64_t data_type_of(Type type) {
  for (const auto& [written, number] : kWritten)
    if (written == type) return number;
  fail("no initialiser of {} is written", tensor::type_name(type));
}

bool is_written(int64_t data_type) {
  return std::any_of(std::begin(kWritten), std::end(kWritten),
                     [&](const auto& one) { return one.second == data_type; });
}

std::string tensor_message(const std::string& name, const Literal& value, OnnxEdit::Apart* apart) {
  std::string bytes;
  pbf_writer out(bytes);
  for (int64_t extent : value.shape().extents()) out.add_int64(1, extent);
  out.add_int64(2, data_type_of(value.type()));
  out.add_string(8, name);
  const std::string_view data(static_cast<const char*>(value.data()),
                              static_cast<size_t>(value.bytes()));
  if (!apart || value.bytes() < kLarge) {
    out.add_bytes(9, data.data(), data.size());
    return bytes;
  }
  apart->bytes.resize((apart->bytes.size() + kAligned - 1) / kAligned * kAligned);
  for (const auto& [key, text] : {std::pair<const char*, std::string>{"location", apart->name},
                                  {"offset", std::to_string(apart->bytes.size())},
                                  {"length", std::to_string(data.size())}}) {
    pbf_writer entry(out, 13);
    entry.add_string(1, key);
    entry.add_string(2, text);
  }
  out.add_enum(14, 1);
  apart->bytes += data;
  return bytes;
}

std::string node_message(const OnnxNode& node) {
  std::string bytes;
  pbf_writer out(bytes);
  for (const std::string& name : node.inputs) out.add_string(kNodeInput, name);
  for (const std::string& name : node.outputs) out.add_string(kNodeOutput, name);
  out.add_string(kNodeName, node.name);
  out.add_string(kNodeType, node.op_type);
  for (const auto& [name, value] : node.ints) {
    pbf_writer attribute(out, kNodeAttribute);
    attribute.add_string(1, name);
    attribute.add_int64(3, value);
    attribute.add_enum(20, 2);
  }
  for (const auto& [name, values] : node.lists) {
    pbf_writer attribute(out, kNodeAttribute);
    attribute.add_string(1, name);
    for (int64_t value : values) attribute.add_int64(8, value);
    attribute.add_enum(20, 7);
  }
  if (!node.domain.empty()) out.add_string(kNodeDomain, node.domain);
  return bytes;
}

OnnxNode read_node(const proto::Node& from) {
  OnnxNode node{std::string(from.op_type), std::string(from.domain), std::string(from.name)};
  for (std::string_view name : from.inputs) node.inputs.emplace_back(name);
  for (std::string_view name : from.outputs) node.outputs.emplace_back(name);
  for (const proto::Attribute& attribute : from.attributes) {
    if (attribute.type == proto::AttrType::int_)
      node.ints.emplace(attribute.name, attribute.i);
    else if (attribute.type == proto::AttrType::float_)
      node.floats.emplace(attribute.name, attribute.f);
    else if (attribute.type == proto::AttrType::ints)
      node.lists.emplace(attribute.name, attribute.ints);
  }
  return node;
}

void add_names(const proto::Graph& graph, std::set<std::string>* names) {
  for (const proto::Node& node : graph.nodes) {
    for (std::string_view name : node.inputs) names->emplace(name);
    for (const proto::Attribute& attribute : node.attributes)
      if (attribute.g) add_names(*attribute.g, names);
  }
  for (const proto::ValueInfo& output : graph.outputs) names->emplace(output.name);
}

}  // namespace

struct OnnxEdit::State {
  std::shared_ptr<const MappedFile> file;
  std::unique_ptr<ExternalFiles> external;
  proto::Model model;
  std::vector<OnnxNode> nodes;
  std::map<std::string, const proto::Tensor*> initializers;
  std::set<std::string> pinned;

  std::map<std::pair<size_t, size_t>, std::string> renamed;
  std::map<size_t, std::vector<OnnxNode>> before, instead;
  std::map<std::string, Literal> added, changed;
  std::vector<std::string> order;  // of `added`
  std::vector<std::string> outputs;
  std::map<std::string, int64_t> opsets;

  Literal value(const proto::Tensor& tensor) const {
    TensorSource source;
    source.file = file;
    source.external = external.get();
    source.bytes_left = Options().max_constant_bytes;
    source.max_elems = Options().max_value_elems;
    return to_literal(tensor, source, fmt::format("initialiser '{}'", tensor.name));
  }

  std::set<std::string> read_names() const {
    std::set<std::string> names = pinned;
    const auto add = [&](const std::vector<OnnxNode>& all) {
      for (const OnnxNode& node : all) names.insert(node.inputs.begin(), node.inputs.end());
    };
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (const auto made = before.find(n); made != before.end()) add(made->second);
      if (const auto made = instead.find(n); made != instead.end()) {
        add(made->second);
        continue;
      }
      for (size_t i = 0; i < nodes[n].inputs.size(); ++i) {
        const auto to = renamed.find({n, i});
        names.insert(to == renamed.end() ? nodes[n].inputs[i] : to->second);
      }
    }
    for (const proto::ValueInfo& output : model.graph.outputs) names.emplace(output.name);
    return names;
  }

  void write_node(pbf_writer& graph, size_t n, const protozero::data_view& bytes) const {
    if (const auto made = before.find(n); made != before.end())
      for (const OnnxNode& node : made->second) graph.add_message(kGraphNode, node_message(node));
    if (const auto made = instead.find(n); made != instead.end()) {
      for (const OnnxNode& node : made->second) graph.add_message(kGraphNode, node_message(node));
      return;
    }
    pbf_writer out(graph, kGraphNode);
    pbf_reader in(bytes);
    for (size_t input = 0; in.next();) {
      const auto to = in.tag() == kNodeInput ? renamed.find({n, input++}) : renamed.end();
      if (to == renamed.end()) {
        copy_field(in, out);
      } else {
        in.skip();
        out.add_string(kNodeInput, to->second);
      }
    }
  }

  void write_initializer(pbf_writer& graph, const proto::Tensor& tensor,
                         const protozero::data_view& bytes, Apart* apart) const {
    const std::string name(tensor.name);
    if (const auto now = changed.find(name); now != changed.end())
      graph.add_message(kGraphInitializer, tensor_message(name, now->second, apart));
    else if (tensor.external ||
             (apart && is_written(tensor.data_type) && bytes.size() >= static_cast<size_t>(kLarge)))
      graph.add_message(kGraphInitializer, tensor_message(name, value(tensor), apart));
    else
      graph.add_message(kGraphInitializer, bytes.data(), bytes.size());
  }

  void write_graph(pbf_writer& graph, const protozero::data_view& bytes, Apart* apart) const {
    const std::set<std::string> names = read_names();
    pbf_reader in(bytes);
    size_t node = 0, number = 0, input = 0;
    while (in.next()) {
      if (in.tag() == kGraphNode) {
        write_node(graph, node++, in.get_view());
      } else if (in.tag() == kGraphInitializer) {
        const proto::Tensor& tensor = model.graph.initializers[number++];
        const protozero::data_view view = in.get_view();
        if (names.contains(std::string(tensor.name))) write_initializer(graph, tensor, view, apart);
      } else if (in.tag() == kGraphInput) {  // an old file lists its initialisers there too
        const std::string name(model.graph.inputs[input++].name);
        const protozero::data_view view = in.get_view();
        if (!initializers.contains(name) || names.contains(name))
          graph.add_message(kGraphInput, view.data(), view.size());
      } else {
        copy_field(in, graph);
      }
    }
    for (const std::string& name : order)
      graph.add_message(kGraphInitializer, tensor_message(name, added.at(name), apart));
    for (const std::string& name : outputs) {
      pbf_writer output(graph, kGraphOutput);
      output.add_string(1, name);
      pbf_writer type(output, 2);
      pbf_writer tensor(type, 1);
      tensor.add_int64(1, 1);
    }
  }

  std::string write(Apart* apart) const {
    std::string bytes;
    pbf_writer out(bytes);
    pbf_reader in(file->bytes().data(), file->bytes().size());
    std::map<std::string, int64_t> wanted = opsets;
    size_t opset = 0;
    while (in.next()) {
      if (in.tag() == kModelGraph) {
        pbf_writer graph(out, kModelGraph);
        write_graph(graph, in.get_view(), apart);
      } else if (in.tag() == kModelOpset) {
        const proto::OpsetImport& known = model.opsets[opset++];
        const std::string domain(known.domain == "ai.onnx" ? "" : known.domain);
        const auto more = wanted.find(domain);
        write_opset(out, std::string(known.domain),
                    std::max(known.version, more == wanted.end() ? 0 : more->second));
        wanted.erase(domain);
        in.skip();
      } else {
        copy_field(in, out);
      }
    }
    for (const auto& [domain, version] : wanted) write_opset(out, domain, version);
    return bytes;
  }

  static void write_opset(pbf_writer& out, const std::string& domain, int64_t version) {
    pbf_writer opset(out, kModelOpset);
    opset.add_string(1, domain);
    opset.add_int64(2, version);
  }
};

OnnxEdit::OnnxEdit(std::unique_ptr<State> state) : state_(std::move(state)) {}
OnnxEdit::~OnnxEdit() = default;
OnnxEdit::OnnxEdit(OnnxEdit&&) noexcept = default;
OnnxEdit& OnnxEdit::operator=(OnnxEdit&&) noexcept = default;

Result<OnnxEdit> OnnxEdit::open(const std::string& path) {
  try {
    const ModelFile found = value_or_throw(open_model_file(path));
    if (found.format != Format::onnx)
      fail("{}: is {}, wanted ONNX", path, format_name(found.format));
    auto state = std::make_unique<State>();
    state->file = found.file;
    const size_t slash = path.rfind('/');
    state->external =
        std::make_unique<ExternalFiles>(slash == std::string::npos ? "." : path.substr(0, slash));
    state->model = proto::decode_model(found.file->bytes(), kMostNodes);
    if (!state->model.has_graph) fail("{}: the model has no graph", path);
    for (const proto::Node& node : state->model.graph.nodes) {
      state->nodes.push_back(read_node(node));
      for (const proto::Attribute& attribute : node.attributes)
        if (attribute.g) add_names(*attribute.g, &state->pinned);
    }
    for (const proto::Tensor& tensor : state->model.graph.initializers) {
      if (!sensible_extents(tensor.dims, Options().max_constant_bytes))
        fail(
            "initialiser '{}': shape [{}]; dimensions must be 0 or more and their product at most "
            "{}",
            tensor.name, fmt::join(tensor.dims, ","), Options().max_constant_bytes);
      state->initializers.emplace(tensor.name, &tensor);
    }
    return OnnxEdit(std::move(state));
  } catch (const Failure& failure) {
    return tl::unexpected<Error>(failure.error);
  }
}

const std::vector<OnnxNode>& OnnxEdit::nodes() const { return state_->nodes; }

std::vector<std::string> OnnxEdit::outputs() const {
  std::vector<std::string> names;
  for (const proto::ValueInfo& output : state_->model.graph.outputs)
    names.emplace_back(output.name);
  return names;
}

bool OnnxEdit::is_initializer(const std::string& name) const {
  return state_->initializers.contains(name);
}

std::vector<int64_t> OnnxEdit::dims_of(const std::string& name) const {
  return state_->initializers.at(name)->dims;
}

bool OnnxEdit::is_f32(const std::string& name) const {
  return state_->initializers.at(name)->data_type == data_type_of(Type::f32);
}

Result<Literal> OnnxEdit::value_of(const std::string& name) const {
  if (const auto now = state_->changed.find(name); now != state_->changed.end()) return now->second;
  try {
    return state_->value(*state_->initializers.at(name));
  } catch (const Failure& failure) {
    return tl::unexpected<Error>(failure.error);
  }
}

bool OnnxEdit::is_pinned(const std::string& name) const { return state_->pinned.contains(name); }

int64_t OnnxEdit::opset() const {
  for (const proto::OpsetImport& one : state_->model.opsets)
    if (one.domain.empty() || one.domain == "ai.onnx") return one.version;
  return 0;
}

int64_t OnnxEdit::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, tensor] : state_->initializers) {
    int64_t elems = 1;
    for (int64_t extent : tensor->dims) elems *= extent;
    try {
      const Type type = element_type(tensor->data_type, name);
      sum += elems * static_cast<int64_t>(tensor::type_bits(type)) / 8;
    } catch (const Failure&) {
      continue;  // text, or an invalid type: the compiler reports it if the model uses it
    }
  }
  return sum;
}

void OnnxEdit::clear() {
  State& s = *state_;
  s.renamed.clear();
  s.before.clear();
  s.instead.clear();
  s.added.clear();
  s.changed.clear();
  s.order.clear();
  s.outputs.clear();
  s.opsets.clear();
}

void OnnxEdit::rename_input(size_t node, size_t input, std::string to) {
  state_->renamed[{node, input}] = std::move(to);
}
void OnnxEdit::put_before(size_t node, OnnxNode made) {
  state_->before[node].push_back(std::move(made));
}
void OnnxEdit::replace(size_t node, std::vector<OnnxNode> made) {
  state_->instead[node] = std::move(made);
}
void OnnxEdit::add(std::string name, Literal value) {
  state_->order.push_back(name);
  state_->added.insert_or_assign(std::move(name), std::move(value));
}
void OnnxEdit::set(const std::string& initializer, Literal value) {
  state_->changed.insert_or_assign(initializer, std::move(value));
}
void OnnxEdit::add_output(std::string name) { state_->outputs.push_back(std::move(name)); }
void OnnxEdit::need_opset(std::string domain, int64_t version) {
  int64_t& known = state_->opsets[std::move(domain)];
  known = std::max(known, version);
}

Result<std::string> OnnxEdit::write(Apart* apart) const {
  try {
    if (apart) apart->bytes.clear();
    std::string bytes = state_->write(apart);
    if (static_cast<int64_t>(bytes.size()) > kMostBytes)
      fail("the model would have {} bytes; an ONNX file holds 2 GiB", bytes.size());
    return bytes;
  } catch (const Failure& failure) {
    return tl::unexpected<Error>(failure.error);
  } catch (const protozero::exception& problem) {
    return user_error("not ONNX, or damaged: {}", problem.what());
  }
}

}  // namespace heddle::import
