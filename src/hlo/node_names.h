// NodeNames: the names of the model's own nodes whose work an instruction does: ONNX node names,
// or what HLO's `metadata={op_name="…"}` says.
//
// A set in order, of shared parts: copies and unions take constant time and memory, however long
// the lists are. Values are immutable; concurrent reads are fine.
//
// As text (one op_name): the names joined by `;`, as XLA joins them. In a name `;` is written
// `%3B`, and `%` before `3B` or `25` is written `%25`. A last item `...` says that there are more;
// it is kept like a name, so that text that is read prints as it was.
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
  void add(const NodeNames& more);  // those that it has stay in front
  // Each once, in the order of adding. Views live as long as this or a copy.
  std::vector<std::string_view> list() const;
  std::string text(size_t most) const;  // of at most so many
  bool operator==(const NodeNames& other) const;

 private:
  friend class NodeList;
  struct Part;
  std::shared_ptr<const Part> root_;
};

// Gathers the names of several instructions, each name and each computation once.
class NodeList {
 public:
  void add(const NodeNames& names);
  // The instruction's own names, and those of all that its called computations hold.
  void add(const Instr& instr);
  void add(const Computation& computation);
  void add_name(std::string_view name);  // which must live as long as this
  const std::vector<std::string_view>& names() const { return names_; }
  std::vector<std::string_view> take() { return std::move(names_); }

 private:
  std::vector<std::string_view> names_;
  std::unordered_set<std::string_view> seen_;
  std::unordered_set<const void*> done_;  // parts and computations
};

// Takes op_name out of metadata as written, `{op_type="Add" op_name="a;b" source_line=3}`, and
// puts it there.
NodeNames take_op_name(std::string* metadata);
std::string with_op_name(std::string_view metadata, const NodeNames& names, size_t most);

}  // namespace heddle::hlo
