// The attributes of one instruction as text: a list of keys and raw values, and the reader that
// converts them to the attribute struct of an opcode. Internal to the parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hlo/attrs.h"
#include "hlo/lexer.h"
#include "hlo/module.h"

namespace heddle::hlo {

// One `key=value`. Called computations are parsed on the spot; other values are kept as text.
struct AttrEntry {
  std::string_view key, raw;
  size_t offset = 0;  // of the key
  std::vector<Computation*> called;
  bool used = false;
};

struct AttrList {
  std::vector<AttrEntry> entries;
  std::vector<Instr*> control_predecessors;
  Annotations annotations;
  Facts facts;
};

// Keys that are kept as annotations on any instruction.
bool is_annotation_key(std::string_view key);
// to_apply, body, calls, …: the value is a computation or a list of them.
bool is_callee_key(std::string_view key);
// FileNames, FunctionNames, FileLocations, StackFrames: kept in Module::header, not as attributes.
bool is_source_table(std::string_view key);

// Reads values by key and marks them used. The first error is kept; after it every key reads as
// absent. Functions return whether the key was there.
class AttrReader {
 public:
  AttrReader(const Lexer& lexer, AttrList& list, std::string what, size_t offset)
      : lexer_(lexer), list_(list), what_(std::move(what)), offset_(offset) {}

  bool ints(std::string_view key, Ints& out);  // {1,2}
  bool integer(std::string_view key, int64_t& out);
  bool boolean(std::string_view key, bool& out);
  bool number(std::string_view key, double& out);
  bool word(std::string_view key, std::string& out);
  bool words(std::string_view key, std::vector<std::string>& out);  // {high,default}
  bool quoted(std::string_view key, std::string& out);
  bool raw(std::string_view key, std::string& out);  // squeezed
  bool window(std::string_view key, Window& out);
  bool dim_labels(std::string_view key, ConvolutionDims& out);
  bool slices(std::string_view key, SliceAttrs& out);
  bool padding(std::string_view key, PadAttrs& out);
  bool pairs(std::string_view key, std::vector<std::pair<int64_t, int64_t>>& out);
  bool aliasing(std::string_view key, std::vector<OutputOperandAlias>& out);
  bool called(std::string_view key, std::vector<Computation*>& out);  // appends
  // "key=value, key=value" of the present keys among `keys`, in the order of the text.
  std::string rest(std::initializer_list<std::string_view> keys);
  // The index in `names` of the value; -1 with an error if it is not among them.
  int choice(std::string_view key, std::initializer_list<std::string_view> names);

  // For keys that the opcode must have: require(r.ints("dimensions", d), "dimensions").
  void require(bool present, std::string_view key);
  void fail(std::string_view key, std::string message);
  Status status() const { return status_; }
  Status check_all_used() const;

 private:
  AttrEntry* take(std::string_view key);
  Lexer value_of(const AttrEntry& entry) const;
  void keep(const Status& status);
  void end_of(Lexer& lexer, std::string_view key);
  const Lexer& lexer_;
  AttrList& list_;
  std::string what_;
  size_t offset_;
  Status status_;
};

// The attribute struct of `opcode`, and its called computations in the order of Instr::called().
// Errors: missing, malformed and unknown keys.
Result<Attrs> read_attrs(Opcode opcode, AttrReader& reader, const std::vector<Instr*>& operands);
Result<std::vector<Computation*>> read_called(Opcode opcode, AttrReader& reader);

// `{1,2}`; `{ {0}: (1, {2}, …), … }` row by row.
Result<Ints> read_index(Lexer& lexer);

}  // namespace heddle::hlo
