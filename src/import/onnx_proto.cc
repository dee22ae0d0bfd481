#include "import/onnx_proto.h"

#include <cstring>
#include <protozero/exception.hpp>
#include <string>

#include "import/onnx_decoder.h"

namespace heddle::import::proto {

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
    case 10:
      to.description = bytes_of("graph", in);
      return;
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

void Decoder::metadata(pbf_reader& in, Model& to) {
  auto& [key, value] = to.metadata.emplace_back();
  nested("metadata", in, [&](pbf_reader& field) {
    if (field.tag() == 1) {
      key = bytes_of("metadata", field);
    } else if (field.tag() == 2) {
      value = bytes_of("metadata", field);
    } else {
      field.skip();
    }
  });
}

// The fields in which the model describes itself. False: another field.
bool Decoder::origin_field(pbf_reader& in, Model& to) {
  switch (in.tag()) {
    case 1:
      to.ir_version = int_of("model", in);
      return true;
    case 2:
      to.producer = bytes_of("model", in);
      return true;
    case 3:
      to.producer_version = bytes_of("model", in);
      return true;
    case 4:
      to.domain = bytes_of("model", in);
      return true;
    case 5:
      to.version = int_of("model", in);
      return true;
    case 6:
      to.description = bytes_of("model", in);
      return true;
    case 14:
      metadata(in, to);
      return true;
    default:
      return false;
  }
}

Model Decoder::model(std::string_view bytes) {
  Model model;
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (origin_field(in, model)) continue;
    switch (in.tag()) {
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

namespace {

constexpr int64_t kOneValue = 1;  // node limit for files of a single value, which have none

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
