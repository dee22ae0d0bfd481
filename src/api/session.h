// Session: the C++ classes behind heddle.h. Model (an imported graph, or a compiled
// program in a file), Program (ready to run on a device), Context (the memory of one run).
//
//   auto model = Model::open(path, {});
//   auto program = Program::compile(**model, {});
//   auto context = (*program)->make_context();
//
// Ownership and thread safety are those of heddle.h. Errors: user and machine, as there.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "import/assertion.h"
#include "import/onnx.h"
#include "runtime/cancellation.h"
#include "runtime/cpu_device.h"
#include "tensor/compare.h"
#include "tensor/index_check.h"
#include "tensor/literal.h"
#include "tensor/vocabulary.h"

namespace heddle::compiler {
struct AdviceReport;
struct Report;
}  // namespace heddle::compiler
namespace heddle::hlo {
class Module;
}
namespace heddle::program {
struct Program;
struct Saved;
}  // namespace heddle::program
namespace heddle::runtime {
class StateArrays;
}
namespace heddle::target {
struct Target;
}

struct heddle_compile_options;
struct heddle_model;
struct heddle_program;

namespace heddle::api {

// An extent that is so much more than others together.
struct SumOfExtents {
  std::vector<std::string> of;
  int64_t more = 0;
  bool operator==(const SumOfExtents&) const = default;
};

struct OpenOptions {
  std::map<std::string, int64_t> dims;
  // Dimensions whose extent is set before each run; initially, and in the model's ports, it is
  // taken from `dims` or `hints`, otherwise it is the bound.
  std::map<std::string, int64_t> bounds;
  // Of these dimensions bounds and extents count so many elements (1 where nothing is said).
  std::map<std::string, int64_t> steps;
  std::map<std::string, SumOfExtents> sums;  // of `bounds`, those that follow from others
  std::map<std::string, std::vector<int64_t>> shapes, hints;
  std::map<std::string, tensor::Literal> constants;
  // Values of inputs in the first run. If a shape depends on one, or on values computed from them,
  // programs are specialised on it: a later run with another value finds or compiles its own
  // program (late.h). Not for models with bounds.
  std::map<std::string, tensor::Literal> values;
  bool late = false;  // shapes of inputs may differ from run to run: Context::set_input_shape
  std::shared_ptr<tensor::Vocabulary>
      vocabulary;  // of strings in `constants`, `values`; null: none
  std::string module_name;
  std::string kv_cache;           // "bf16", "int8" (import/kv_cache.h); empty: unchanged
  bool random_constants = false;  // HLO text: constants written as {...} get invented values
  // Receives the unsupported parts of the model; null: not wanted.
  std::shared_ptr<std::vector<import::Unsupported>> unsupported;
};

// Facts about a dimension of a port besides its extent.
struct NamedDim {
  std::string name;             // in the model; or empty
  int64_t least = 0, most = 0;  // range of extents in runs, if it is bounded
};

struct Port {
  std::string name, alias;
  tensor::Shape shape;  // an array or a token; extents at their bounds
  std::vector<int64_t> dims;
  int64_t bytes = 0;
  std::vector<NamedDim> named;  // by dimension; empty: nothing is known
  bool is_known = true;         // false: the shape is unknown until a context is prepared (late.h)
  bool is_text = false;         // strings: ids of Model::vocabulary
};

struct Bounded;
struct Family;
struct Late;

class Model {
 public:
  static Result<std::unique_ptr<Model>> open(const std::string& path, const OpenOptions& options);
  static Result<std::unique_ptr<Model>> parse(const std::string& name, std::string_view bytes,
                                              const OpenOptions& options);
  // From a family of texts (family.h). Errors: those of the first text.
  static Result<std::unique_ptr<Model>> of_family(Family family, const OpenOptions& options);
  // From a module made elsewhere: names as for HLO text.
  static std::unique_ptr<Model> from_module(std::unique_ptr<hlo::Module> module);
  static std::unique_ptr<Model> from_imported(import::Imported imported);
  // With the bounds in `with`, for extents from `least` on, with one bucket (bounded.h). Errors:
  // those of the import; the reason why it cannot be bounded.
  static Result<std::unique_ptr<Model>> of_bounded(
      const std::function<Result<import::Imported>(const import::Options&)>& import,
      import::Options wanted, const OpenOptions& with, const std::map<std::string, int64_t>& least);
  // The ports of a compiled program that the caller has. Error (user): one has a layout.
  static Result<std::unique_ptr<Model>> from_program(const program::Program& program);
  // Only for an imported graph.
  std::unique_ptr<Model> clone() const;
  ~Model();

  const std::string& name() const { return name_; }
  const std::string& format() const { return format_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  const std::vector<std::string>& notes() const { return notes_; }
  // For a file: dynamic dimensions left unbound, with their extents, and the other files that were
  // read (external data).
  const std::vector<std::pair<std::string, int64_t>>& unbound() const { return unbound_; }
  const std::vector<std::string>& files() const { return files_; }
  const import::Origin& origin() const { return origin_; }
  // Checks made by a run. Their hidden outputs come after outputs() in the module or program.
  const std::vector<tensor::IndexCheck>& index_checks() const { return index_checks_; }
  // For a StableHLO test: assertions on outputs().
  const std::vector<import::Assertion>& assertions() const { return assertions_; }
  // Null: the model has no strings.
  const std::shared_ptr<tensor::Vocabulary>& vocabulary() const { return vocabulary_; }
  double import_ms() const { return import_ms_; }
  int64_t instructions() const { return instructions_; }
  bool is_program() const { return is_program_; }
  // Null: all extents are constant. Otherwise module() and the ports have the initial extents of
  // contexts.
  const std::shared_ptr<const Bounded>& bounded() const { return bounded_; }
  // Null: all shapes are known. Otherwise module() and the ports are those for the first run's
  // values; inputs() includes the deciding inputs, which are constants in module().
  const std::shared_ptr<const Late>& late() const { return late_; }
  // Null: a compiled program, or consumed. saved() is not null only for a compiled program.
  const hlo::Module* module() const { return module_.get(); }
  const program::Saved* saved() const { return saved_.get(); }

  // buffers[i]: inputs()[i].bytes bytes. See heddle_model_random_inputs.
  Status random_inputs(uint64_t seed, std::span<void* const> buffers) const;
  const tensor::Tolerance& tolerance(size_t output) const { return tolerances_.at(output); }

 private:
  friend class Program;
  Model();
  void take(import::Imported imported);
  // From a file or from memory, by `import`. Errors: those of the import.
  Status take_open(const std::function<Result<import::Imported>(const import::Options&)>& import,
                   import::Options wanted, const OpenOptions& options);
  Status take_bounded(const std::function<Result<import::Imported>(const import::Options&)>& import,
                      import::Options wanted, const OpenOptions& options);
  Status take_late(std::function<Result<import::Imported>(const import::Options&)> import,
                   import::Options wanted, bool shapes);
  static Result<std::unique_ptr<Model>> open_program(const std::string& path,
                                                     const OpenOptions& options,
                                                     const std::string_view* bytes = nullptr);
  static Result<std::unique_ptr<Model>> of_saved(const std::string& path, program::Saved saved,
                                                 const OpenOptions& options);

  std::string name_, format_;
  std::vector<Port> inputs_, outputs_;
  std::vector<tensor::Tolerance> tolerances_;  // by output
  std::vector<std::string> notes_, files_;
  std::vector<std::pair<std::string, int64_t>> unbound_;
  std::vector<tensor::IndexCheck> index_checks_;
  std::vector<import::Assertion> assertions_;
  std::shared_ptr<tensor::Vocabulary> vocabulary_;
  import::Origin origin_;
  double import_ms_ = 0;
  int64_t instructions_ = 0;
  bool is_program_ = false;
  std::unique_ptr<hlo::Module> module_;
  std::shared_ptr<const Bounded> bounded_;
  std::shared_ptr<const Late> late_;
  std::shared_ptr<const program::Saved> saved_;
};

struct CompileProgress {
  const char* step = "";
  int done = 0, steps = 0;
  double seconds = 0;  // since the compilation began
};

// A member for each row of compiler/options.def except the compiler's own: texts and numbers as in
// heddle_compile_options. memory_limit_bytes: -1 for none.
struct CompileOptions {
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) std::string field = plain;
#define HEDDLE_TEXT(part, Type, field, plain, value, help) Type field = plain;
#define HEDDLE_NUMBER(part, Type, field, C, plain, ...) Type field = plain;
#define HEDDLE_FOLDER(part, field, help) std::string field;
#define HEDDLE_FLAG(part, field) bool field = false;
#include "compiler/options.def"

  bool code = true;  // false: decisions, kernels and the plan only, for any target; it cannot run
  bool keep_prepared = true;  // also stores large prepared weights in the cache
  // Called before every step, on the compiling thread; false ends it with an error of the cancelled
  // kind.
  std::function<bool(const CompileProgress&)> progress;
  runtime::HostAllocator allocator;  // of temporaries and prepared weights on the cpu
};

// Numbers of a program, all of one run. See heddle_program_info.
struct ProgramFacts {
  std::string device, isa, target, level, precision, options;
  int threads = 1;
  bool cache_warm = false;
  int64_t kernels = 0, run_kernels = 0, launches = 0, flops = 0, min_bytes = 0;
  int64_t constant_bytes = 0, input_bytes = 0, output_bytes = 0, temporary_bytes = 0;
  int64_t temporary_lower_bound_bytes = 0, temporary_unshared_bytes = 0, object_bytes = 0;
  bool temporary_optimal = false;
  int64_t temporary_pool_peak_bytes = 0;
  double compile_ms = 0, peak_flops_per_ns = 0, bandwidth_bytes_per_ns = 0;
  std::string swap;      // how switching to the program of the background may change results
  bool pending = false;  // that program is not ready
  // For bounded dimensions: the number of programs so far, and the bounds of the last one
  // ("length=64, batch=4"), which these facts describe.
  int64_t compilations = 1;
  std::string bucket;
};

class Context;
class SharedWeights;

class Program {
 public:
  static Result<std::shared_ptr<Program>> compile(Model& model, const CompileOptions& options);
  virtual ~Program();

  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  // Checks of its contexts: index inputs are checked before a run, computed indices after it.
  const std::vector<tensor::IndexCheck>& index_checks() const { return index_checks_; }
  bool checks_input(int64_t number) const;
  virtual const std::vector<std::string>& notes() const { return notes_; }
  virtual const std::vector<std::pair<std::string, double>>& steps() const { return steps_; }
  virtual const ProgramFacts& facts() const { return facts_; }
  // Empty if the program came from the cache of programs (CompileOptions::explain avoids that).
  virtual const compiler::Report& report() const { return *report_; }
  virtual const program::Program* compiled() const = 0;  // null: interpreted

  virtual Status save(const std::string& path) = 0;
  // The program that save() writes. Error (user): it cannot be saved as one program.
  virtual Result<program::Program> take() const;
  // Prepares the weights now, and shares equal ones with programs that used the same `weights`.
  // Must come before the first context.
  virtual Status share(SharedWeights* /*weights*/) { return {}; }
  // The state arrays of its contexts: names and shapes, and the arrays; empty or null if there are
  // none (it is interpreted; it has bounded dimensions and has not run).
  virtual const std::vector<Port>& state_ports() const { return state_ports_; }
  virtual std::shared_ptr<runtime::StateArrays> states() const { return nullptr; }
  // From now on it uses the state arrays of another program of the same model: runs of either
  // continue from the last run of both. Must come before the first context.
  virtual Status use_states(std::shared_ptr<runtime::StateArrays> /*states*/) { return {}; }
  // Waits, at most `most`, for a compilation in the background, or for prepared weights that the
  // first run has begun to store in the cache. False: not ready. Error: of the compilation.
  virtual Result<bool> wait(std::chrono::milliseconds) { return true; }
  // A context keeps its program alive. Context::cancel() sets `cancellation`.
  virtual Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<runtime::Cancellation> cancellation) = 0;
  Result<std::unique_ptr<Context>> make_context();

 protected:
  Program();
  std::vector<Port> inputs_, outputs_, state_ports_;
  std::vector<tensor::IndexCheck> index_checks_;
  std::vector<std::string> notes_;
  std::vector<std::pair<std::string, double>> steps_;  // name, ms
  ProgramFacts facts_;
  std::unique_ptr<compiler::Report> report_;
};

struct CommandReport {
  const char *name = "", *operators = "", *kind = "", *kernel = "", *label = "";
  int64_t flops = 0, bytes = 0, count = 0, total_ns = 0, min_ns = 0;
  std::span<const char* const> nodes;  // lives as long as the context
};

// The arguments of one run, by port number, and the extents of bounded dimensions (those not named
// keep the model's).
struct RunRequest {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  std::vector<std::pair<std::string, int64_t>> extents;
};
// Infer, resize, launch (runtime/pipeline.h); null: nothing to do.
using RunSteps = std::array<std::function<Status()>, 3>;

class Context {
 public:
  explicit Context(std::shared_ptr<runtime::Cancellation> cancellation)
      : cancellation_(std::move(cancellation)) {}
  virtual ~Context() = default;
  virtual Status bind_input(int64_t number, const void* data) = 0;
  virtual Status bind_output(int64_t number, void* data) = 0;
  // Binds memory of the GPU that the program runs on (heddle_device.h). By default an error (user):
  // this context's device has no memory of its own.
  virtual Status bind_device(bool input, int64_t number, void* data);
  // Sets the extent of a bounded dimension for the following runs (initially the model's): inputs
  // and outputs are dense arrays of the actual extents.
  virtual Status set_extent(const std::string& name, int64_t extent);
  // For a model with late shapes. prepare() finds or compiles the program for the bound inputs;
  // then outputs() are that program's (before: those for the first run's values). By default shapes
  // are fixed and there is nothing to prepare.
  virtual Status set_input_shape(int64_t number, const std::vector<int64_t>& dims);
  virtual Status prepare() { return {}; }
  virtual const std::vector<Port>* late_outputs() const { return nullptr; }  // null: the program's
  virtual Status run() = 0;
  // One run in steps. Each step must be called after the same step of the previous run; different
  // steps may be called concurrently. Nothing else may run in between. By default everything is in
  // the launch step.
  virtual RunSteps steps(RunRequest request);
  void cancel() { cancellation_->ask(); }  // from any thread; see heddle_context_cancel
  // Checks made by the next run; null: it has none of its own.
  virtual std::vector<tensor::IndexCheck>* index_checks() { return nullptr; }
  virtual void set_profile(bool on) = 0;
  virtual void reset_profile() = 0;
  virtual int64_t command_count() const = 0;
  virtual CommandReport command(int64_t number) const = 0;

 protected:
  // Shared by all contexts that serve one context of the caller: whichever runs checks it.
  const std::shared_ptr<runtime::Cancellation> cancellation_;
};

// The object in a handle of heddle.h, and the inverse.
const Model& unwrap(const heddle_model* model);
Model& unwrap(heddle_model* model);
heddle_program* wrap(std::shared_ptr<Program> program);
const Program& unwrap(const heddle_program* program);
CompileOptions unwrap(const heddle_compile_options& options);

// See heddle_compile_until.
Result<std::string> compile_until(const Model& model, const CompileOptions& options,
                                  const std::string& point);
// What a model's designer could change to make it faster; see compiler/advise.h.
Result<compiler::AdviceReport> advise(const Model& model, const CompileOptions& options);
// The stop points before and after the passes, in order: "import", …; passes come between the first
// two.
std::span<const std::string_view> stop_points();

}  // namespace heddle::api
