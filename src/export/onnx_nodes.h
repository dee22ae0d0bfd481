// Instructions as nodes of ai.onnx.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hlo/module.h"

namespace heddle::exports {

// A node to be written; names are those of values.
struct OnnxNode {
  std::string op_type, domain;  // empty: ai.onnx
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, int64_t>> ints;
  std::vector<std::pair<std::string, std::vector<int64_t>>> lists;
  std::vector<std::pair<std::string, std::string>> strings;
};

// Makes the nodes of an instruction; intermediate values and constants get names too.
class OnnxNodes {
 public:
  virtual ~OnnxNodes() = default;
  virtual std::string fresh(std::string_view name) = 0;  // of a value
  virtual std::string constant(const tensor::Literal& value) = 0;
  virtual void add(OnnxNode node) = 0;
  // Number of a type in TensorProto; throws if there is none.
  virtual int64_t type_number(tensor::Type type) const = 0;

  // Whether ai.onnx has an equivalent; then its nodes are added, and `result` is the last one's
  // output.
  bool plain(const hlo::Instr& instr, const std::vector<std::string>& operands,
             const std::string& result);

 private:
  std::string step(std::string_view op_type, std::vector<std::string> inputs,
                   std::string output = {});
  std::string ints(const std::vector<int64_t>& values);
  bool elementwise(const hlo::Instr& instr, const std::vector<std::string>& operands,
                   const std::string& result);
  bool movement(const hlo::Instr& instr, const std::vector<std::string>& operands,
                const std::string& result);
  bool gather(const hlo::Instr& instr, const std::vector<std::string>& operands,
              const std::string& result);
  bool reduction(const hlo::Instr& instr, const std::vector<std::string>& operands,
                 const std::string& result);
  bool pool(const hlo::Instr& instr, const std::vector<std::string>& operands,
            const std::string& result);
  bool product(const hlo::Instr& instr, const std::vector<std::string>& operands,
               const std::string& result);
  bool convolution(const hlo::Instr& instr, const std::vector<std::string>& operands,
                   const std::string& result);
};

}  // namespace heddle::exports
