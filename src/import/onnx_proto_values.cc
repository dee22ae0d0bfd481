#include <memory>

#include "import/onnx_decoder.h"

namespace heddle::import::proto {

void Decoder::tensor_data_field(pbf_reader& in, Tensor& to) {
  switch (in.tag()) {
    case 4:
      return numbers_of("tensor", in, pbf_wire_type::fixed32, to.float_data);
    case 5:
      return numbers_of("tensor", in, pbf_wire_type::varint, to.int32_data);
    case 6:
      to.strings.push_back(bytes_of("tensor", in));
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

}  // namespace heddle::import::proto
