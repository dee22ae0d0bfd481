// HLO text: parser and printer. parse(print(m)) equals m; print is a fixed point
// after one step.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hlo/module.h"

namespace heddle::hlo {

// One module. Errors: "line:column: what, got, wanted". Nesting and sizes are bounded.
Result<std::unique_ptr<Module>> parse_module(std::string_view text);
// Splits a file at `// -----` lines and at each further HloModule, and parses each part; parts
// without a module (only comments) are left out.
Result<std::vector<std::unique_ptr<Module>>> parse_modules(std::string_view text);
Result<Shape> parse_shape(std::string_view text);
Result<Literal> parse_literal(std::string_view text, const Shape& shape);

struct PrintOptions {
  int64_t max_constant_elems = -1;  // -1: all; else larger constants print as {...}
  bool annotations = true;
  size_t max_nodes = 8;               // names of nodes at an instruction; more print as `...`
  bool ids_instead_of_names = false;  // canonical names, for hashing and comparing
};
std::string to_string(const Module& module, const PrintOptions& options = {});
std::string to_string(const Computation& computation, const PrintOptions& options = {});
std::string to_string(const Instr& instr, const PrintOptions& options = {});  // one line
std::string attrs_to_string(const Instr& instr);                              // "dimensions={1}, …"

}  // namespace heddle::hlo
