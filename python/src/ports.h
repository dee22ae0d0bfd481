// Inputs and outputs of a session, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "heddle.h"

namespace heddle::python {

struct Dim {
  std::string name;  // what the model calls it; or empty
  int64_t extent = 0, least = 0, most = 0;
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

// (name, type, is_text, dims or None); a dim is (name, extent, least, most).
nanobind::tuple describe(const Port& port);

// "f32[2,3]".
std::string shape_text(heddle_type type, const int64_t* dims, size_t rank);

}  // namespace heddle::python
