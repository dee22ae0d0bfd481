// GPTQ's part of heddle quantize: sums over the inputs of layers, and weights rounded by them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration_runs.h"
#include "quantize/gptq.h"
#include "quantize/rewrite.h"

namespace heddle::tools {

class InputRounding {
 public:
  // Adds the sums that are wanted to the model: of chosen layers whose weights no other layer reads
  // in blocks, as long as they fit (gptq.h). A note says how many do not.
  void add_outputs(const std::vector<quantize::Layer>& layers, const quantize::Plan& plan,
                   import::OnnxEdit* model, std::vector<std::string>* notes);
  std::vector<std::string> outputs() const;

  // Puts the rounded weights into plan->blocks; takes the sums out of `seen`. Error (cancelled):
  // Ctrl-C.
  Status round(const import::OnnxEdit& model, const std::vector<quantize::Layer>& layers,
               int64_t block, Collected* seen, quantize::Plan* plan, Progress* progress);
  // By layer: its error, of that of plain rounding.
  const std::map<size_t, double>& ratios() const { return ratios_; }

 private:
  struct Input {
    quantize::GramOutputs outputs;
    std::vector<size_t> layers;
  };
  std::map<std::string, Input> inputs_;  // by activation
  std::map<size_t, double> ratios_;
};

}  // namespace heddle::tools
