// The rows of hlo_proto_types.def.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/type.h"

namespace heddle::import {

enum class ProtoCoding : uint8_t { none, varint, fixed, bytes };

struct ProtoType {
  tensor::Type type;
  int64_t number;     // in PrimitiveType
  int literal_field;  // of LiteralProto
  ProtoCoding coding;
};

inline constexpr auto kProtoTypes = std::to_array<ProtoType>({
#define HEDDLE_PROTO_TYPE(type, number, field, coding) \
  {tensor::Type::type, number, field, ProtoCoding::coding},
#include "import/hlo_proto_types.def"
});

const ProtoType* proto_type(tensor::Type type);  // null: none

}  // namespace heddle::import
