// Changes to an ONNX file that leave all else as it is: what is not changed is copied byte by byte,
// what no field of ours describes too. For tools that write models (quantize).
//
// Everything an edit names must exist, or the model that comes out is not valid. Tensors in files
// of their own are written into the new file. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/literal.h"

namespace heddle::import {

// A node of the graph; of its attributes the numbers.
struct OnnxNode {
  std::string op_type, domain, name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, int64_t> ints;
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, float> floats;  // read only
};

class OnnxEdit {
 public:
  // Errors (user): not there, not ONNX, damaged.
  static Result<OnnxEdit> open(const std::string& path);
  ~OnnxEdit();
  OnnxEdit(OnnxEdit&&) noexcept;
  OnnxEdit& operator=(OnnxEdit&&) noexcept;

  // ---- what is there ----
  const std::vector<OnnxNode>& nodes() const;
  std::vector<std::string> outputs() const;
  bool is_initializer(const std::string& name) const;
  std::vector<int64_t> dims_of(const std::string& initializer) const;
  bool is_f32(const std::string& initializer) const;
  Result<tensor::Literal> value_of(const std::string& initializer) const;
  // Of the main graph; a name that a nested graph reads is pinned: it must stay.
  bool is_pinned(const std::string& name) const;
  int64_t opset() const;  // of ai.onnx
  int64_t bytes() const;  // of all initialisers

  // ---- changes; kept until clear() ----
  void clear();
  void rename_input(size_t node, size_t input, std::string to);
  void put_before(size_t node, OnnxNode made);
  // Instead of a node (which put_before still stands before).
  void replace(size_t node, std::vector<OnnxNode> made);
  void add(std::string name, tensor::Literal value);  // an initialiser
  void set(const std::string& initializer, tensor::Literal value);
  void add_output(std::string name);  // an f32 tensor that the model computes, of any shape
  void need_opset(std::string domain, int64_t version);

  // The model with the changes; initialisers that nothing reads any more are left out. `apart`: a
  // file beside the model, by its name, that gets what is large. Error (user): more than 2 GiB,
  // which no ONNX file holds.
  struct Apart {
    std::string name, bytes;
  };
  Result<std::string> write(Apart* apart = nullptr) const;

 private:
  struct State;
  explicit OnnxEdit(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heddle::import
