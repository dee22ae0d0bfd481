// heddle profile --ranges and --grad-histogram: what values are, instead of where time goes.
#pragma once

#include <optional>
#include <string>

#include "model_options.h"
#include "output_file.h"
#include "report.h"
#include "values.h"

namespace heddle::tools {

class ValueProfile {
 public:
  void declare(CommandLine& line);
  bool asked() const { return ranges_.given() || gradients_; }
  // Error (user): an option of these without one that asks for values.
  Status check() const;
  // Prints, writes the files. `inputs`: what samples leave open. Errors also: those of the samples,
  // of api::run_values; cancelled by Ctrl-C.
  Result<int> run(const OpenChoices& open, const InputChoices& inputs,
                  const CompileChoices& compile, const JsonChoice& json) const;

 private:
  OutputFile ranges_;
  bool gradients_ = false;
  std::string calib_;
  std::optional<int64_t> samples_;
};

}  // namespace heddle::tools
