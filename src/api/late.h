// Private to api: models of which something is known late. The values of some inputs, or values
// that are computed from inputs, decide shapes (Reshape by an input, NonZero); or shapes of inputs
// are others in each run (OpenOptions::late).
//
// A program of such a model is a tree of decisions. Its root branches by the shapes of the inputs;
// a node asks for the value of an input, or for one that a program computes (a stage); a leaf is
// the program for all that was decided on the way. A run walks from the root to a leaf; what is not
// there yet is imported and compiled. Leaves are bounded by number and bytes: those that ran least
// recently go. Where only the extents of named dimensions differ, one leaf is for a bucket of them
// (size_buckets.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/counts.h"
#include "api/session.h"
#include "import/onnx.h"

namespace heddle::api {

// More stages in a row than any model has that comes to an end: a loop that data stops, and that
// collects outputs, has one for each trip.
inline constexpr size_t kMostStages = 256;
// Error (user): `why` would be one more.
Status check_stages(size_t count, const std::string& why);

// What a run brings, by number of the model's input. Data is null where nothing is bound, which is
// an error where it is asked for.
struct LateInputs {
  std::vector<tensor::Shape> shapes;
  bool no_open_counts =
      false;  // as a run has told that a program with open ones is not right for it
  std::vector<const void*> data;
  // Behind the model's inputs those of extents that follow from them (computed_extents.h), once
  // sizes have differed; their data.
  std::vector<std::vector<int32_t>> positions;
};

struct Late {
  std::function<Result<import::Imported>(const import::Options&)> import;
  import::Options asked;      // what all imports have in common
  bool shapes = false;        // those of inputs may differ, too
  bool sizes_differ = false;  // named dimensions do: buckets of them from the first run on
  std::vector<Port> inputs;   // the model's; shapes are the first run's
  std::map<std::string, tensor::Literal> first;  // values of the first run, where they were given
  std::set<int64_t> deciding;                    // numbers of the inputs that decide in that run
  bool first_is_known = true;  // false: too few values were given to say what the outputs are
};

// The options of an import for these inputs: their shapes, and as hints the values of all that are
// small enough to decide anything.
import::Options import_options(const Late& late, const LateInputs& inputs);

// What input of a part (a stage, a leaf) is: that of LateInputs of that number, or (-1) a value
// that an earlier stage has computed, by name.
struct PartInput {
  int64_t number = -1;
  std::string carried;
};
// `behind`: inputs behind the model's.
std::vector<PartInput> inputs_of(const Late& late, const Model& part,
                                 const std::vector<Port>& behind = {});

// Of outputs at their bounds: without those that are counts; which dimensions the others have that
// follow them is not known.
void hide_extents(const CountOutputs& counts, std::vector<Port>& outputs);

// Imports with the values of the first run; programs for this machine compute what is decided by
// computed values. Errors: those of the import; a value that decides was not given.
// `stages`: whether any was.
Result<import::Imported> import_first(const Late& late, bool* stages);

// Errors: those of import and compilation for the first run's values.
Result<std::shared_ptr<Program>> compile_late(const Model& model, const CompileOptions& options,
                                              bool interpreted);

}  // namespace heddle::api
