// Edits an ONNX file without touching the rest: unchanged parts are copied byte for byte, including
// fields unknown to us. For tools that write models (quantize).
// Everything that an edit names must exist, or the resulting model is invalid. Tensors in separate
// files are written into the new file. Not thread-safe.
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

// A node of the graph, with its numeric attributes.
struct OnnxNode {
  std::string op_type, domain, name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, int64_t> ints;
  std::map<std::string, std::vector<int64_t>> lists;
  std::map<std::string, float> floats;  // read only
};

class OnnxEdit {
 public:
  // Errors (user): missing, not ONNX, damaged.
  static Result<OnnxEdit> open(const std::string& path);
  ~OnnxEdit();
  OnnxEdit(OnnxEdit&&) noexcept;
  OnnxEdit& operator=(OnnxEdit&&) noexcept;

  // ---- content of the model ----
  const std::vector<OnnxNode>& nodes() const;
  std::vector<std::string> outputs() const;
  bool is_initializer(const std::string& name) const;
  std::vector<int64_t> dims_of(const std::string& initializer) const;
  bool is_f32(const std::string& initializer) const;
  Result<tensor::Literal> value_of(const std::string& initializer) const;
  // In the main graph; a name is pinned if a nested graph reads it: it must stay.
  bool is_pinned(const std::string& name) const;
  int64_t opset() const;  // of ai.onnx
  int64_t bytes() const;  // of all initialisers

  // ---- changes; kept until clear() ----
  void clear();
  void rename_input(size_t node, size_t input, std::string to);
  void put_before(size_t node, OnnxNode made);
  // Replaces a node (nodes of put_before still come before it).
  void replace(size_t node, std::vector<OnnxNode> made);
  void add(std::string name, tensor::Literal value);  // an initialiser
  void set(const std::string& initializer, tensor::Literal value);
  void add_output(std::string name);  // an f32 tensor that the model computes, of any shape
  void need_opset(std::string domain, int64_t version);

  // The model with the changes; initialisers that are no longer read are left out. `apart`: a file
  // beside the model, by its name, that gets large tensors. Error (user): more than 2 GiB, the
  // limit of an ONNX file.
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
