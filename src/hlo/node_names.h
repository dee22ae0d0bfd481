// NodeNames: the names of the model's own nodes whose work an instruction does: ONNX node names, or
// the names in HLO's `metadata={op_name="…"}`.
//
// An ordered set with shared parts: copies and unions take constant time and memory, however long
// the lists are. Values are immutable; concurrent reads are fine.
//
// As text (one op_name): the names joined by `;`, as in XLA. In a name `;` is written `%3B`, and
// `%` before `3B` or `25` is written `%25`. A last item `...` means that more were left out; it is
// kept like a name, so that parsed text prints unchanged.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace heddle::hlo {

class Computation;
class Instr;

class NodeNames {
 public:
  NodeNames() = default;  // none
  explicit NodeNames(std::string name);
  static NodeNames from_text(std::string_view text);

  bool empty() const { return root_ == nullptr; }
  void add(const NodeNames& more);  // existing names stay in front
  // Each once, in the order of adding. Views live as long as this or a copy.
  std::vector<std::string_view> list() const;
  std::string text(size_t most) const;  // of at most `most` names
  bool operator==(const NodeNames& other) const;

 private:
  friend class NodeList;
  struct Part;
  std::shared_ptr<const Part> root_;
};

// Collects the names of several instructions, visiting each name and each computation once.
class NodeList {
 public:
  void add(const NodeNames& names);
  // The instruction's own names, and those of all instructions in its called computations.
  void add(const Instr& instr);
  void add(const Computation& computation);
  void add_name(std::string_view name);  // which must outlive this
  const std::vector<std::string_view>& names() const { return names_; }
  std::vector<std::string_view> take() { return std::move(names_); }

 private:
  std::vector<std::string_view> names_;
  std::unordered_set<std::string_view> seen_;
  std::unordered_set<const void*> done_;  // parts and computations
};

// take_op_name removes op_name from metadata as written, `{op_type="Add" op_name="a;b"
// source_line=3}`; with_op_name adds it.
NodeNames take_op_name(std::string* metadata);
std::string with_op_name(std::string_view metadata, const NodeNames& names, size_t most);

}  // namespace heddle::hlo
