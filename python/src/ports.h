// Inputs and outputs of a session, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle.h"

namespace heddle::python {

struct Dim {
  std::string name;                         // what the model calls it; or empty
  int64_t extent = 0, least = 0, most = 0;  // differs from run to run where least < most
  int64_t times = 1;                        // bounded: it is so many times the extent of that name
};

struct Port {
  std::string name, alias;
  nanobind::object key, alias_key;  // the same, interned
  heddle_type type = 0;
  bool is_text = false, is_known = true;  // not known: its shape is, once a run is prepared
  std::vector<Dim> dims;
};

// All of a program's.
std::vector<Port> input_ports(const heddle_program* program);
std::vector<Port> output_ports(const heddle_program* program);

constexpr int64_t kNoBound = INT64_MAX;
// Of a model whose shapes are known late: opens dimensions that the model names, but for those that
// are `fixed`, and those without a name that nothing bound (`all`: any). Of outputs without a name
// it is not known.
void open_dims(const heddle_model* model, bool all, const nanobind::dict& fixed,
               std::vector<Port>& ports);
// Finds Dim::times, by what a context accepts as extents.
void find_times(heddle_program* program, std::vector<Port>& ports);

using Extents = std::map<std::string, int64_t>;
// A dimension that is known when it runs follows from others where its name is such a sum:
// "past + 1", "2*new - 3".
bool is_sum(const std::string& name);
// Nothing: a name in it is not known.
std::optional<int64_t> extent_of(const std::string& name, const Extents& extents);

// (name, type, is_text, dims or None); a dim is (name, extent, least, most).
nanobind::tuple describe(const Port& port);

// "f32[2,3]".
std::string shape_text(heddle_type type, const int64_t* dims, size_t rank);

}  // namespace heddle::python
