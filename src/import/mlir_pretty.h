// The table of pretty forms: the syntax of each operation of stablehlo, chlo, check, ….
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace heddle::import {

// Meaning of the types after `:`. last: the result has the last of them; all: one per result; none:
// no result. `… -> types` always gives the results.
enum class PrettyTypes : uint8_t { last, all, none };

// A keyword of a pretty form (`dims = [0]`) and its attribute in the generic form.
struct PrettyKeyword {
  std::string_view keyword, attr;
  // Values are words of stablehlo (`type = RFFT`).
  bool word = false;
};

struct PrettyForm {
  std::string_view name;
  // plain: operands, then keywords, each after a comma. The others: mlir_pretty_forms.cc.
  enum class Syntax : uint8_t {
    plain,
    constant,
    compare,
    slice,
    element,
    precision,
    call,
    custom_call,
    composite,
    dot,
    convolution,
    reduce,
    while_loop,
    scan,
    mesh,
    sharding,
    manual,
    module_op,
    function
  };
  Syntax syntax = Syntax::plain;
  PrettyTypes types = PrettyTypes::last;
  std::array<PrettyKeyword, 4> keywords = {};
};

// Null: no pretty form is known. `func.call` is also found as `call`, and so on.
const PrettyForm* find_pretty_form(std::string_view name);

}  // namespace heddle::import
