#include "import/onnx_proto.h"

#include <cstring>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>
#include <string>

#include "import/failure.h"

namespace heddle::import::proto {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kDeepest = 100;                         // messages inside messages
constexpr int64_t kMostElements = int64_t{64} << 20;  // of all repeated fields together
constexpr int64_t kMessageCost = 16;                  // a message counts as that many elements

// Decodes one file. Reading a field with another wire type than the schema's would be undefined in
// protozero, so every read goes through these functions, which check first.
class Decoder {
 public:
  explicit Decoder(int64_t max_nodes) : max_nodes_(max_nodes) {}

  Model model(std::string_view bytes);
  // Of a whole file.
  Tensor tensor(std::string_view bytes);
  Sequence sequence(std::string_view bytes);
  OptionalValue optional(std::string_view bytes);

 private:
  using View = std::string_view;

  [[noreturn]] static void wrong_wire(const char* message, const pbf_reader& in) {
    fail("{}: field {} has wire type {}: not an ONNX model, or damaged", message, in.tag(),
         static_cast<int>(in.wire_type()));
  }
  View bytes_of(const char* message, pbf_reader& in) {
    if (in.wire_type() != pbf_wire_type::length_delimited) wrong_wire(message, in);
    // protozero keeps 32 bits of a length; a longer one must not pass for a short one.
    const protozero::data_view rest = in.data();
    const char* at = rest.data();
    const char* const end = at + rest.size();
    const uint64_t length = protozero::decode_varint(&at, end);
    if (length > static_cast<uint64_t>(end - at)) throw protozero::end_of_buffer_exception{};
    const protozero::data_view view = in.get_view();
    return {view.data(), view.size()};
  }
  int64_t int_of(const char* message, pbf_reader& in) {
    if (in.wire_type() != pbf_wire_type::varint) wrong_wire(message, in);
    return in.get_int64();
  }
  float float_of(const char* message, pbf_reader& in) {
    if (in.wire_type() != pbf_wire_type::fixed32) wrong_wire(message, in);
    return in.get_float();
  }
  void charge(int64_t elements) {
    elements_ += elements;
    if (elements_ > kMostElements) fail("more than {} entries in the model's lists", kMostElements);
  }
  void strings_of(const char* message, pbf_reader& in, std::vector<View>& to) {
    charge(1);
    to.push_back(bytes_of(message, in));
  }
  void ints_of(const char* message, pbf_reader& in, std::vector<int64_t>& to);
  void floats_of(const char* message, pbf_reader& in, std::vector<float>& to);
  void numbers_of(const char* message, pbf_reader& in, pbf_wire_type wire, Numbers& to);
  // Enters a message: depth and count are bounded.
  pbf_reader enter(const char* message, pbf_reader& in) {
    charge(kMessageCost);
    if (depth_ >= kDeepest) fail("messages nested more than {} deep", kDeepest);
    const View view = bytes_of(message, in);
    return pbf_reader(view.data(), view.size());
  }
  template <typename Function>
  void nested(const char* message, pbf_reader& in, Function read) {
    pbf_reader inner = enter(message, in);
    ++depth_;
    while (inner.next()) read(inner);
    --depth_;
  }

  void graph(pbf_reader& in, Graph& to);
  void graph_field(pbf_reader& in, Graph& to);
  void node(pbf_reader& in, std::vector<Node>& to);
  void attribute(pbf_reader& in, Attribute& to);
  void attribute_field(pbf_reader& in, Attribute& to, AttrType& seen);
  void tensor(pbf_reader& in, Tensor& to);
  void tensor_field(pbf_reader& in, Tensor& to);
  void sequence_field(pbf_reader& in, Sequence& to);
  void tensor_data_field(pbf_reader& in, Tensor& to);
  void value_info(pbf_reader& in, ValueInfo& to);
  void type(pbf_reader& in, ValueInfo& to);
  void tensor_type(pbf_reader& in, ValueInfo& to);
  void dimension(pbf_reader& in, DimInfo& to);
  void opset(pbf_reader& in, std::vector<OpsetImport>& to);
  void function(pbf_reader& in, Function& to);

  int64_t max_nodes_, nodes_ = 0, elements_ = 0;
  int depth_ = 0;
};

void Decoder::ints_of(const char* message, pbf_reader& in, std::vector<int64_t>& to) {
  if (in.wire_type() == pbf_wire_type::varint) {
    charge(1);
    to.push_back(in.get_int64());
    return;
  }
  View view = bytes_of(message, in);
  const char* at = view.data();
  const char* end = at + view.size();
  while (at < end) {
    charge(1);
    to.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
  }
}

void Decoder::floats_of(const char* message, pbf_reader& in, std::vector<float>& to) {
  if (in.wire_type() == pbf_wire_type::fixed32) {
    charge(1);
    to.push_back(in.get_float());
    return;
  }
  const View view = bytes_of(message, in);
  if (view.size() % sizeof(float) != 0)
    fail("{}: {} bytes of packed floats are not a multiple of 4", message, view.size());
  charge(static_cast<int64_t>(view.size() / sizeof(float)));
  const size_t old = to.size();
  to.resize(old + view.size() / sizeof(float));
  if (!view.empty()) std::memcpy(to.data() + old, view.data(), view.size());
}

void Decoder::numbers_of(const char* message, pbf_reader& in, pbf_wire_type wire, Numbers& to) {
  charge(1);
  if (in.wire_type() == pbf_wire_type::length_delimited) {
    to.packed.push_back(bytes_of(message, in));
  } else if (in.wire_type() != wire) {
    wrong_wire(message, in);
  } else if (wire == pbf_wire_type::varint) {
    to.loose.push_back(in.get_uint64());
  } else if (wire == pbf_wire_type::fixed32) {
    to.loose.push_back(in.get_fixed32());
  } else {
    to.loose.push_back(in.get_fixed64());
  }
}

void Decoder::tensor_data_field(pbf_reader& in, Tensor& to) {
  switch (in.tag()) {
    case 4:
      return numbers_of("tensor", in, pbf_wire_type::fixed32, to.float_data);
    case 5:
      return numbers_of("tensor", in, pbf_wire_type::varint, to.int32_data);
    case 6:
      bytes_of("tensor", in);
      ++to.string_count;
      return;
    case 7:
      return numbers_of("tensor", in, pbf_wire_type::varint, to.int64_data);
    case 10:
      return numbers_of("tensor", in, pbf_wire_type::fixed64, to.double_data);
    case 11:
      return numbers_of("tensor", in, pbf_wire_type::varint, to.uint64_data);
    default:
      in.skip();
  }
}

void Decoder::tensor_field(pbf_reader& field, Tensor& to) {
  switch (field.tag()) {
    case 1:
      return ints_of("tensor", field, to.dims);
    case 2:
      to.data_type = int_of("tensor", field);
      return;
    case 3:
      to.has_segment = true;
      return field.skip();
    case 8:
      to.name = bytes_of("tensor", field);
      return;
    case 9:
      to.has_raw_data = true;
      to.raw_data = bytes_of("tensor", field);
      return;
    case 13: {
      std::pair<View, View> entry;
      nested("external data", field, [&](pbf_reader& part) {
        if (part.tag() == 1) {
          entry.first = bytes_of("external data", part);
        } else if (part.tag() == 2) {
          entry.second = bytes_of("external data", part);
        } else {
          part.skip();
        }
      });
      to.external_data.push_back(entry);
      return;
    }
    case 14:
      to.external = int_of("tensor", field) == 1;
      return;
    default:
      return tensor_data_field(field, to);
  }
}

void Decoder::tensor(pbf_reader& in, Tensor& to) {
  nested("tensor", in, [&](pbf_reader& field) { tensor_field(field, to); });
}

void Decoder::sequence_field(pbf_reader& in, Sequence& to) {
  switch (in.tag()) {
    case 3:
      return tensor(in, to.tensors.emplace_back());
    case 4:
    case 5:
    case 6:
    case 7:
      to.others = true;
      return in.skip();
    default:
      in.skip();
  }
}

void Decoder::attribute_field(pbf_reader& in, Attribute& to, AttrType& seen) {
  constexpr const char* kMessage = "attribute";
  switch (in.tag()) {
    case 2:
      to.f = float_of(kMessage, in);
      seen = AttrType::float_;
      return;
    case 3:
      to.i = int_of(kMessage, in);
      seen = AttrType::int_;
      return;
    case 4:
      to.s = bytes_of(kMessage, in);
      seen = AttrType::string;
      return;
    case 5:
      to.t = std::make_shared<Tensor>();
      tensor(in, *to.t);
      seen = AttrType::tensor;
      return;
    case 6:
      to.g = std::make_shared<Graph>();
      graph(in, *to.g);
      seen = AttrType::graph;
      return;
    case 7:
      floats_of(kMessage, in, to.floats);
      seen = AttrType::floats;
      return;
    case 8:
      ints_of(kMessage, in, to.ints);
      seen = AttrType::ints;
      return;
    case 9:
      strings_of(kMessage, in, to.strings);
      seen = AttrType::strings;
      return;
    default:
      in.skip();
  }
}

void Decoder::attribute(pbf_reader& in, Attribute& to) {
  AttrType seen = AttrType::undefined;
  nested("attribute", in, [&](pbf_reader& field) {
    switch (field.tag()) {
      case 1:
        to.name = bytes_of("attribute", field);
        return;
      case 20:
        to.type = static_cast<AttrType>(int_of("attribute", field));
        return;
      case 21:
        to.ref_attr_name = bytes_of("attribute", field);
        return;
      default:
        return attribute_field(field, to, seen);
    }
  });
  if (to.type == AttrType::undefined) to.type = seen;
}

void Decoder::node(pbf_reader& in, std::vector<Node>& to) {
  if (++nodes_ > max_nodes_) fail("more than {} nodes", max_nodes_);
  Node& node = to.emplace_back();
  node.place = static_cast<int64_t>(to.size()) - 1;
  nested("node", in, [&](pbf_reader& field) {
    switch (field.tag()) {
      case 1:
        return strings_of("node", field, node.inputs);
      case 2:
        return strings_of("node", field, node.outputs);
      case 3:
        node.name = bytes_of("node", field);
        return;
      case 4:
        node.op_type = bytes_of("node", field);
        return;
      case 5:
        return attribute(field, node.attributes.emplace_back());
      case 7:
        node.domain = bytes_of("node", field);
        return;
      case 8:
        node.overload = bytes_of("node", field);
        return;
      default:
        field.skip();
    }
  });
}

void Decoder::dimension(pbf_reader& in, DimInfo& to) {
  nested("dimension", in, [&](pbf_reader& field) {
    if (field.tag() == 1) {
      to.kind = DimInfo::Kind::value;
      to.value = int_of("dimension", field);
    } else if (field.tag() == 2) {
      to.symbol = bytes_of("dimension", field);
      to.kind = to.symbol.empty() ? DimInfo::Kind::unknown : DimInfo::Kind::symbol;
    } else {
      field.skip();
    }
  });
}

void Decoder::tensor_type(pbf_reader& in, ValueInfo& to) {
  nested("type", in, [&](pbf_reader& field) {
    if (field.tag() == 1) {
      to.elem_type = int_of("type", field);
    } else if (field.tag() == 2) {
      to.has_shape = true;
      to.dims.clear();
      nested("shape", field, [&](pbf_reader& part) {
        if (part.tag() == 1) {
          dimension(part, to.dims.emplace_back());
        } else {
          part.skip();
        }
      });
    } else {
      field.skip();
    }
  });
}

void Decoder::type(pbf_reader& in, ValueInfo& to) {
  nested("type", in, [&](pbf_reader& field) {
    using Kind = ValueInfo::Kind;
    if (field.tag() == 1) {
      to.kind = Kind::tensor;
      return tensor_type(field, to);
    }
    const auto of = [&](Kind kind, const char* message) {
      to.kind = kind;
      to.element = std::make_shared<ValueInfo>();
      nested(message, field, [&](pbf_reader& part) {
        if (part.tag() == 1) {
          type(part, *to.element);
        } else {
          part.skip();
        }
      });
    };
    switch (field.tag()) {
      case 4:
        return of(Kind::sequence, "sequence type");
      case 9:
        return of(Kind::optional, "optional type");
      case 5:
        to.kind = Kind::map;
        break;
      case 7:
        to.kind = Kind::opaque;
        break;
      case 8:
        to.kind = Kind::sparse;
        break;
      default:
        break;
    }
    field.skip();
  });
}

void Decoder::value_info(pbf_reader& in, ValueInfo& to) {
  nested("value", in, [&](pbf_reader& field) {
    if (field.tag() == 1) {
      to.name = bytes_of("value", field);
    } else if (field.tag() == 2) {
      type(field, to);
    } else {
      field.skip();
    }
  });
}

void Decoder::graph_field(pbf_reader& in, Graph& to) {
  switch (in.tag()) {
    case 1:
      return node(in, to.nodes);
    case 2:
      to.name = bytes_of("graph", in);
      return;
    case 5:
      return tensor(in, to.initializers.emplace_back());
    case 11:
      return value_info(in, to.inputs.emplace_back());
    case 12:
      return value_info(in, to.outputs.emplace_back());
    case 15:
      ++to.sparse_initializers;
      return in.skip();
    default:
      in.skip();
  }
}

void Decoder::graph(pbf_reader& in, Graph& to) {
  nested("graph", in, [&](pbf_reader& field) { graph_field(field, to); });
}

void Decoder::opset(pbf_reader& in, std::vector<OpsetImport>& to) {
  OpsetImport& import = to.emplace_back();
  nested("opset import", in, [&](pbf_reader& field) {
    if (field.tag() == 1) {
      import.domain = bytes_of("opset import", field);
    } else if (field.tag() == 2) {
      import.version = int_of("opset import", field);
    } else {
      field.skip();
    }
  });
}

void Decoder::function(pbf_reader& in, Function& to) {
  nested("function", in, [&](pbf_reader& field) {
    switch (field.tag()) {
      case 1:
        to.name = bytes_of("function", field);
        return;
      case 4:
        return strings_of("function", field, to.inputs);
      case 5:
        return strings_of("function", field, to.outputs);
      case 6:
        return strings_of("function", field, to.attributes);
      case 7:
        return node(field, to.nodes);
      case 9:
        return opset(field, to.opsets);
      case 10:
        to.domain = bytes_of("function", field);
        return;
      case 11:
        return attribute(field, to.default_attributes.emplace_back());
      case 13:
        to.overload = bytes_of("function", field);
        return;
      default:
        field.skip();
    }
  });
}

Model Decoder::model(std::string_view bytes) {
  Model model;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    switch (in.tag()) {
      case 1:
        model.ir_version = int_of("model", in);
        break;
      case 2:
        model.producer = bytes_of("model", in);
        break;
      case 7:
        if (model.has_graph) fail("two graphs in one model");
        model.has_graph = true;
        graph(in, model.graph);
        break;
      case 8:
        opset(in, model.opsets);
        break;
      case 25:
        function(in, model.functions.emplace_back());
        break;
      default:
        in.skip();
    }
  }
  return model;
}

Tensor Decoder::tensor(View bytes) {
  Tensor tensor;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) tensor_field(in, tensor);
  return tensor;
}

Sequence Decoder::sequence(View bytes) {
  Sequence sequence;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) sequence_field(in, sequence);
  return sequence;
}

OptionalValue Decoder::optional(View bytes) {
  OptionalValue value;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag() == 2) {
      value.elem_type = int_of("optional", in);
    } else if (in.tag() == 3) {
      value.tensor = std::make_shared<Tensor>();
      tensor(in, *value.tensor);
    } else if (in.tag() == 5) {
      value.sequence = std::make_shared<Sequence>();
      nested("sequence", in, [&](pbf_reader& field) { sequence_field(field, *value.sequence); });
    } else {
      in.skip();
    }
  }
  return value;
}

// Calls read(); what protozero throws becomes a Failure. `what`: "an ONNX model".
template <typename Read>
auto decoded(std::string_view bytes, const char* what, Read read) {
  if (bytes.size() > INT32_MAX)
    fail("{} bytes; a protobuf message has at most 2 GiB: keep the weights in external data",
         bytes.size());
  try {
    return read();
  } catch (const protozero::end_of_buffer_exception&) {
    fail("truncated: a field goes past the end of its message (not {}, or damaged)", what);
  } catch (const protozero::varint_too_long_exception&) {
    fail("a number of more than 10 bytes (not {}, or damaged)", what);
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    fail("a field of unknown wire type (not {}, or damaged)", what);
  } catch (const protozero::exception& error) {
    fail("{} (not {}, or damaged)", error.what(), what);
  }
}

constexpr int64_t kOneValue = 1;  // nodes in a file of a value: none

}  // namespace

Model decode_model(std::string_view bytes, int64_t max_nodes) {
  if (bytes.empty()) fail("the file is empty");
  return decoded(bytes, "an ONNX model", [&] { return Decoder(max_nodes).model(bytes); });
}

Tensor decode_tensor(std::string_view bytes) {
  return decoded(bytes, "a tensor", [&] { return Decoder(kOneValue).tensor(bytes); });
}

Sequence decode_sequence(std::string_view bytes) {
  return decoded(bytes, "a sequence", [&] { return Decoder(kOneValue).sequence(bytes); });
}

OptionalValue decode_optional(std::string_view bytes) {
  return decoded(bytes, "an optional", [&] { return Decoder(kOneValue).optional(bytes); });
}

}  // namespace heddle::import::proto
