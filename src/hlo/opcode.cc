#include "hlo/opcode.h"

#include <string>
#include <type_traits>
#include <unordered_map>

#include "base/check.h"
#include "hlo/attrs.h"

namespace heddle::hlo {
namespace {

template <typename T, typename... Ts>
constexpr int index_in(const std::variant<Ts...>*) {
  int index = 0;
  bool found = false;
  (((found = found || std::is_same_v<T, Ts>), index += found ? 0 : 1), ...);
  return index;
}

template <typename T>
constexpr int attrs_index() {
  constexpr int index = index_in<T>(static_cast<const Attrs*>(nullptr));
  static_assert(index < static_cast<int>(std::variant_size_v<Attrs>),
                "not an alternative of Attrs");
  return index;
}

// As written in kernel/ops.def: without the underscore that avoids a C++ keyword.
constexpr std::string_view kernel_text(std::string_view name) {
  if (name == "none") return {};
  if (name.back() == '_') name.remove_suffix(1);
  return name;
}

constexpr OpcodeInfo kTable[] = {
#define HEDDLE_OP(name, text, least, most, attrs, traits, stage, kernel_op, cost, mapping, \
                  narrowing)                                                               \
  {text,                                                                                   \
   least,                                                                                  \
   most,                                                                                   \
   static_cast<uint8_t>(traits),                                                           \
   StageKind::stage,                                                                       \
   kernel_text(#kernel_op),                                                                \
   CostClass::cost,                                                                        \
   Mapping::mapping,                                                                       \
   Narrowing::narrowing,                                                                   \
   attrs_index<attrs>()},
#include "hlo/ops.def"
};

}  // namespace

const OpcodeInfo& opcode_info(Opcode opcode) {
  HEDDLE_CHECK(static_cast<int>(opcode) < kOpcodeCount);
  return kTable[static_cast<int>(opcode)];
}

std::optional<Opcode> opcode_from_text(std::string_view text) {
  static const auto* const by_text = [] {
    auto* map = new std::unordered_map<std::string_view, Opcode>;
    for (int i = 0; i < kOpcodeCount; ++i) map->emplace(kTable[i].text, static_cast<Opcode>(i));
    return map;
  }();
  auto found = by_text->find(text);
  if (found == by_text->end()) return std::nullopt;
  return found->second;
}

}  // namespace heddle::hlo
