// Shared by the tests of HLO text: comparison of modules by structure, and the test files.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "hlo/text.h"

namespace heddle::hlo {

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string testdata(const std::string& name) {
  return read_file(HEDDLE_SOURCE_DIR "/src/hlo/testdata/" + name);
}

template <typename T>
std::vector<std::string> names_of(const std::vector<T*>& list) {
  std::vector<std::string> names;
  for (const T* each : list) names.push_back(each->name());
  return names;
}

// The first difference, or an empty string. Computations are compared by name and their contents in
// order; ids are ignored.
inline std::string difference(const Instr& a, const Instr& b) {
  if (a.name() != b.name()) return "name " + a.name() + " against " + b.name();
  if (a.opcode() != b.opcode()) return "opcode of " + a.name();
  if (!(a.shape() == b.shape())) return "shape of " + a.name();
  if (names_of(a.operands()) != names_of(b.operands())) return "operands of " + a.name();
  if (names_of(a.called()) != names_of(b.called())) return "called of " + a.name();
  if (names_of(a.control_predecessors()) != names_of(b.control_predecessors()))
    return "control predecessors of " + a.name();
  if (!(a.attrs() == b.attrs())) return "attributes of " + a.name();
  if (a.annotations() != b.annotations()) return "annotations of " + a.name();
  if (!(a.facts() == b.facts())) return "facts of " + a.name();
  return {};
}

inline std::string difference(const Module& a, const Module& b) {
  if (a.name() != b.name()) return "module name " + a.name() + " against " + b.name();
  if (a.is_scheduled != b.is_scheduled) return "is_scheduled";
  if (a.input_output_alias != b.input_output_alias) return "input_output_alias";
  if (a.entry_layout != b.entry_layout) return "entry layout";
  if (a.replica_count != b.replica_count || a.num_partitions != b.num_partitions) return "counts";
  if (a.symbols != b.symbols) return "symbols";
  if (a.states != b.states) return "states";
  if (a.header != b.header) return "header";
  if (a.entry()->name() != b.entry()->name()) return "entry";
  if (a.computations().size() != b.computations().size()) return "number of computations";
  for (const auto& computation : a.computations()) {
    const Computation* other = b.find(computation->name());
    if (!other) return "no computation " + computation->name();
    if (computation->execution_thread != other->execution_thread)
      return "thread of " + computation->name();
    if (computation->root()->name() != other->root()->name())
      return "root of " + computation->name();
    if (computation->instrs().size() != other->instrs().size())
      return "number of instructions of " + computation->name();
    for (size_t i = 0; i < computation->instrs().size(); ++i)
      if (auto found = difference(*computation->instrs()[i], *other->instrs()[i]); !found.empty())
        return computation->name() + ": " + found;
  }
  return {};
}

// parse(print(m)) equals m, and printing that gives the same text.
inline void expect_round_trip(const Module& module, const std::string& where) {
  const std::string text = to_string(module);
  Result<std::unique_ptr<Module>> again = parse_module(text);
  ASSERT_TRUE(again) << where << ": " << again.error().message << "\n" << text.substr(0, 4000);
  EXPECT_EQ(difference(module, **again), "") << where;
  EXPECT_EQ(to_string(**again), text) << where;
}

}  // namespace heddle::hlo
