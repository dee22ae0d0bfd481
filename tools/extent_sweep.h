// --dim NAME=FIRST..LAST[:STEP] of run and bench: a model with a bounded dimension, at one extent
// after the other.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "handles.h"
#include "model_options.h"
#include "terminal.h"
#include "values.h"

namespace heddle::tools {

struct ExtentRange {
  std::string name;
  int64_t first = 1, last = 1, step = 1;
};
// The one of these --dim that is a range; none: there is no "..". Errors: a range of another form,
// two of them.
Result<std::optional<ExtentRange>> find_range(const std::vector<std::string>& dims);

class ExtentSweep {
 public:
  // Opens and compiles. Inputs are random: those of the last extent, cut. Errors: also given
  // values.
  static Result<std::unique_ptr<ExtentSweep>> begin(const OpenChoices& open,
                                                    const InputChoices& inputs,
                                                    const CompileChoices& compile,
                                                    const ExtentRange& range);
  // Binds dense inputs and outputs of this extent.
  Status set_extent(int64_t extent);
  Result<double> timed_run();  // ms

  // Shows how far it is, on a terminal.
  void show_progress(int64_t extent);
  void hide_progress() { progress_.hide(); }

  const ExtentRange& range() const { return range_; }
  const heddle_program* program() const { return program_.get(); }
  const Unbound& unbound() const { return unbound_; }  // beside the range's dimension
  std::string head_text(const std::string& model) const;
  const std::string& inputs_description() const { return inputs_.description; }
  const std::vector<tensor::Literal>& outputs() const { return outputs_; }
  const std::string& output_name(size_t i) const { return output_names_.at(i); }
  std::string counts_text() const;  // "512 shapes, 6 compilations"
  int64_t shapes() const;
  // The results of all extents, and how many compilations they took.
  nlohmann::ordered_json json(const std::string& model, nlohmann::ordered_json extents) const;

 private:
  struct Form {  // of an input or output
    tensor::Type type;
    std::vector<int64_t> last;    // dimensions at the last extent
    std::vector<int64_t> factor;  // by dimension: how many more it has for one more of the extent
    tensor::Shape at(const ExtentRange& range, int64_t extent) const;
  };
  // The other extent is `apart` less.
  static Form form_of(const heddle_port& at_last, const heddle_port& at_other, int64_t apart);

  ExtentRange range_;
  Progress progress_;
  ProgramHandle program_;
  ContextHandle context_;
  InputValues inputs_;  // at the last extent
  uint64_t seed_ = 0;
  Unbound unbound_;
  std::vector<Form> input_forms_, output_forms_;
  std::vector<std::string> output_names_;
  std::vector<tensor::Literal> bound_, outputs_;
};

}  // namespace heddle::tools
