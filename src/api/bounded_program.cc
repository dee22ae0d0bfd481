// Programs of models with bounded dimensions: a cache of specialisations.
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "api/bounded.h"
#include "api/compiled.h"
#include "api/opened_device.h"
#include "api/ports.h"
#include "api/run_extents.h"
#include "api/shared_weights.h"
#include "api/staging.h"
#include "compiler/compiler.h"
#include "hlo/module.h"
#include "program/file.h"
#include "runtime/state_arrays.h"

namespace heddle::api {
// If no bounds were requested, a program must not have such kernels (trim-part: over one; trim-few:
// 16,384 elements at most).
Status check_trimmed(const Program& program) {
  for (const auto& refusal : program.report().refusals)
    if (refusal.code.starts_with("trim-") && refusal.code != "trim-part" &&
        refusal.code != "trim-few")
      return error_of(ErrorKind::unsupported, "{} would always compute all of its bounds: {}",
                      refusal.producer, refusal.reason);
  return {};
}

namespace {

constexpr size_t kMostPrograms = 64;  // in a file

struct Specialisation {
  Bucket bucket;
  std::unique_ptr<Model> model;
  std::shared_ptr<Program> program;
  std::vector<int64_t> inputs_of;  // by output: the input whose memory it may use; -1: none
};

class BoundedProgram : public Program, public std::enable_shared_from_this<BoundedProgram> {
 public:
  BoundedProgram(const Model& model, CompileOptions options, SharedWeights* shared = nullptr)
      : bounded_(model.bounded()), options_(std::move(options)), others_(shared) {
    options_.consume_model = true;
    options_.keep_prepared = false;  // six buckets would evict all other entries
    inputs_ = model.inputs();
    outputs_ = model.outputs();
  }
  // From a program file.
  BoundedProgram(const Model& model, std::shared_ptr<const program::Saved> saved,
                 DeviceRequest where, std::string dump)
      : BoundedProgram(model, CompileOptions()) {
    saved_ = std::move(saved);
    where_ = std::move(where);
    options_.dump = std::move(dump);
  }

  // Compiles for the first extents, so that errors are reported at once.
  Status begin(bool interpreted) {
    exact_ = interpreted;
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Specialisation> first, specialise(first_sizes()));
    notes_ = first->program->notes();
    if (!why_exact_.empty())
      notes_.push_back("bounds: compiled separately for each extent: " + why_exact_);
    steps_ = first->program->steps();
    *report_ = first->program->report();
    return {};
  }

  const Sizes& first_sizes() const { return bounded_->first; }

  const ProgramFacts& facts() const override {
    const std::lock_guard lock(mutex_);
    return all_facts_.back();
  }
  const Bounded& bounded() const { return *bounded_; }
  const program::Program* compiled() const override {
    const std::lock_guard lock(mutex_);
    return all_.front()->program->compiled();
  }
  const std::vector<Port>& state_ports() const override {
    const std::lock_guard lock(mutex_);
    return all_.front()->program->state_ports();
  }
  std::shared_ptr<runtime::StateArrays> states() const override { return states_; }
  // Saves the programs of all buckets.
  Status save(const std::string& path) override {
    if (saved_) return user_error("{}: the program came from a file already", path);
    if (!bounded_->range_growth.empty())
      return user_error(
          "{}: {} takes positions along a dynamic dimension, and a file cannot hold their range; "
          "bind the dimension to a number (--dim)",
          path, all_.front()->program->index_checks()[bounded_->range_growth[0].check].node);
    if (!bounded_->products.empty())
      return user_error(
          "{}: dimension {} of output {} is a product of dynamic dimensions, and a file cannot say "
          "it; bind one of them to a number (--dim)",
          path, bounded_->products[0].dimension,
          outputs_[static_cast<size_t>(bounded_->products[0].output)].name);
    program::Saved saved;
    saved.symbols = saved_symbols(*bounded_, inputs_, outputs_);
    const std::vector<Sizes> all = all_buckets(*bounded_);
    if (all.size() > kMostPrograms)
      return user_error(
          "{}: {} would need {} programs, wanted at most {}; bind a dimension to a number", path,
          program::dimensions_text(saved.symbols), all.size(), kMostPrograms);
    for (const Sizes& extents : all) {
      HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Specialisation> one, specialise(extents));
      if (exact_ || !why_exact_.empty())
        return user_error(
            "{}: programs compiled separately for each extent cannot be saved{}{}; bind the "
            "dimensions to numbers",
            path, why_exact_.empty() ? "" : ": ", why_exact_);
      program::Variant variant{one->bucket.least, one->bucket.bounds, one->bucket.told, {}};
      HEDDLE_ASSIGN_OR_RETURN(variant.program, one->program->take());
      saved.variants.push_back(std::move(variant));
    }
    return program::save(saved, path);
  }
  Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<runtime::Cancellation> cancellation) override;

  // The program for these extents; compiled at first use. Thread-safe.
  Result<std::shared_ptr<Specialisation>> specialise(const Sizes& extents) {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Specialisation>& known : all_)
      if (is_for(*known, extents)) return known;
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Specialisation> made,
                            saved_ ? load(extents) : compile(extents));
    HEDDLE_RETURN_IF_ERROR(made->program->use_states(states_));
    all_.push_back(made);
    ProgramFacts facts = made->program->facts();
    facts.compilations = static_cast<int64_t>(all_.size());
    for (size_t s = 0; s < made->bucket.bounds.size(); ++s)
      if (bounded_->asked[s])
        facts.bucket += fmt::format("{}{}={}", facts.bucket.empty() ? "" : ", ",
                                    bounded_->symbols[s].name, made->bucket.bounds[s]);
    all_facts_.push_back(std::move(facts));
    return made;
  }

 private:
  static bool is_for(const Specialisation& one, const Sizes& extents) {
    for (size_t s = 0; s < extents.size(); ++s)
      if (extents[s] < one.bucket.least[s] || extents[s] > one.bucket.bounds[s]) return false;
    return true;
  }

  Result<std::shared_ptr<Specialisation>> compile(const Sizes& extents) {
    auto made = std::make_shared<Specialisation>();
    import::Imported imported;
    if (exact_) {
      HEDDLE_ASSIGN_OR_RETURN(imported, bounded_->import_at(at(*bounded_, extents)));
      made->bucket = {extents, extents, {}};
    } else {
      HEDDLE_ASSIGN_OR_RETURN(imported,
                              import_bucket(*bounded_, extents, &made->bucket, &why_exact_));
      if (others_ && !why_exact_.empty()) return user_error("{}", why_exact_);
    }
    made->model = Model::from_imported(std::move(imported));
    HEDDLE_ASSIGN_OR_RETURN(made->program, Program::compile(*made->model, options_));
    if (others_) HEDDLE_RETURN_IF_ERROR(check_trimmed(*made->program));
    HEDDLE_RETURN_IF_ERROR(made->program->share(others_ ? others_ : &shared_));
    find_memory(made.get());
    return made;
  }

  Result<std::shared_ptr<Specialisation>> load(const Sizes& extents) {
    const int64_t number = program::variant_for(*saved_, extents);
    if (number < 0)
      return user_error("the file has no program for {}", fmt::join(at(*bounded_, extents), ", "));
    const program::Variant& variant = saved_->variants[static_cast<size_t>(number)];
    auto made = std::make_shared<Specialisation>();
    made->bucket = {variant.least, variant.bounds, variant.told};
    HEDDLE_ASSIGN_OR_RETURN(made->model, Model::from_program(variant.program));
    HEDDLE_ASSIGN_OR_RETURN(made->program, load_for_device(program::Program(variant.program),
                                                           *made->model, where_, options_.dump));
    find_memory(made.get());
    return made;
  }

  void find_memory(Specialisation* made) const {
    made->inputs_of.assign(outputs_.size(), -1);
    const program::Program* program = made->program->compiled();
    if (!program) return;  // interpreted
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const program::BufferId buffer = program->outputs[i].buffer;
      if (!buffer.valid()) continue;
      const program::BufferId input = program->buffers[buffer.index()].alias;
      if (input.valid()) made->inputs_of[i] = program->buffers[input.index()].number;
    }
  }

  std::shared_ptr<const Bounded> bounded_;
  CompileOptions options_;
  std::shared_ptr<const program::Saved> saved_;  // null: from a model
  DeviceRequest where_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Specialisation>> all_;
  SharedWeights* others_;  // if not null: shared by several programs with one bucket each
  SharedWeights shared_;   // otherwise: weights of the programs in all_
  std::shared_ptr<runtime::StateArrays> states_ = std::make_shared<runtime::StateArrays>();
  std::deque<ProgramFacts> all_facts_;  // references to elements stay valid
  bool exact_ = false;
  std::string why_exact_;
};

class BoundedContext : public Context {
 public:
  BoundedContext(std::shared_ptr<BoundedProgram> program,
                 std::shared_ptr<runtime::Cancellation> cancellation)
      : Context(std::move(cancellation)),
        program_(std::move(program)),
        inputs_(program_->inputs().size()),
        outputs_(program_->outputs().size()),
        said_(first_extents()) {
    const ProgramFacts& facts = program_->facts();
    if (facts.device == "cpu" && facts.threads > 1) workers_ = cpu_workers(facts.threads);
  }

  Status bind_input(int64_t number, const void* data) override {
    if (number < 0 || number >= static_cast<int64_t>(inputs_.size()))
      return user_error("no input {}, there are {}", number, inputs_.size());
    inputs_[static_cast<size_t>(number)] = data;
    return {};
  }
  Status bind_output(int64_t number, void* data) override {
    if (number < 0 || number >= static_cast<int64_t>(outputs_.size()))
      return user_error("no output {}, there are {}", number, outputs_.size());
    outputs_[static_cast<size_t>(number)] = data;
    return {};
  }

  Status set_extent(const std::string& name, int64_t extent) override {
    return said_.set(name, extent);
  }
  Status set_input_shape(int64_t number, const std::vector<int64_t>& dims) override {
    return said_.set_input_shape(static_cast<size_t>(number), dims);
  }
  Status prepare() override { return said_.check(); }
  const std::vector<Port>* late_outputs() const override { return &said_.outputs(); }

  Status run() override {
    HEDDLE_RETURN_IF_ERROR(said_.check());
    for (const std::function<Status()>& step : steps_of(inputs_, outputs_, said_.extents()))
      HEDDLE_RETURN_IF_ERROR(step());
    return {};
  }

  RunSteps steps(RunRequest request) override {
    RunExtents extents = first_extents();
    Status told;
    for (const auto& [name, extent] : request.extents)
      if (told) told = extents.set(name, extent);
    if (told) told = extents.check();
    RunSteps made =
        steps_of(std::move(request.inputs), std::move(request.outputs), extents.extents());
    made[0] = [told = std::move(told), infer = std::move(made[0])]() -> Status {
      HEDDLE_RETURN_IF_ERROR(told);
      return infer();
    };
    return made;
  }

  void set_profile(bool on) override {
    profile_ = on;
    for (auto& [bounds, ready] : ready_) ready.context->set_profile(on);
  }
  void reset_profile() override {
    for (auto& [bounds, ready] : ready_) ready.context->reset_profile();
  }
  // From the specialisation that ran last.
  int64_t command_count() const override { return last_ ? last_->context->command_count() : 0; }
  CommandReport command(int64_t number) const override {
    return last_ ? last_->context->command(number) : CommandReport();
  }

 private:
  struct Ready {
    std::shared_ptr<Specialisation> specialisation;
    std::unique_ptr<Context> context;
    std::vector<std::unique_ptr<Staging>> free;  // last in, first out: bindings rarely change
  };

  // One run during its steps.
  struct Run {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    Sizes extents;
    Ready* ready = nullptr;
    std::unique_ptr<Staging> staging;
    std::vector<Box> in_boxes, boxes;  // by input, by output: actual extents
  };

  RunSteps steps_of(std::vector<const void*> inputs, std::vector<void*> outputs, Sizes extents) {
    auto run = std::make_shared<Run>();
    run->inputs = std::move(inputs);
    run->outputs = std::move(outputs);
    run->extents = std::move(extents);
    return {[this, run] { return infer(*run); }, [this, run] { return resize(*run); },
            [this, run] { return launch(*run); }};
  }

  RunExtents first_extents() const {
    return RunExtents(program_->bounded(), program_->inputs(), program_->outputs());
  }

  Status infer(Run& run) const {
    const auto find = [&](bool input) -> Status {
      const std::vector<Port>& ports = input ? program_->inputs() : program_->outputs();
      std::vector<Box>& boxes = input ? run.in_boxes : run.boxes;
      for (size_t i = 0; i < ports.size(); ++i) {
        const Bounded& bounded = program_->bounded();
        boxes.push_back(input
                            ? bounded.actual(ports[i].dims, bounded.places_of_input(i), run.extents)
                            : bounded.actual_output(i, ports[i].dims, run.extents));
        const bool empty = std::count(boxes[i].begin(), boxes[i].end(), 0) > 0;
        if ((input ? run.inputs[i] : run.outputs[i]) == nullptr && !empty)
          return user_error("{} {} is not bound to memory", input ? "input" : "output",
                            ports[i].name);
      }
      return {};
    };
    HEDDLE_RETURN_IF_ERROR(find(true));
    return find(false);
  }

  Status resize(Run& run) {
    HEDDLE_ASSIGN_OR_RETURN(run.ready, ready_for(run.extents));
    const Specialisation& one = *run.ready->specialisation;
    run.staging = take_staging(*run.ready);
    Staging& staging = *run.staging;
    const std::vector<Box>& boxes = run.in_boxes;
    int64_t bytes = 0;
    for (size_t i = 0; i < run.inputs.size(); ++i) {
      const Port& port = one.program->inputs()[i];
      if (boxes[i] == port.dims) continue;
      staging.inputs[i].resize(static_cast<size_t>(port.bytes));
      bytes += port.bytes;
    }
    copy_all(workers_.get(), run.inputs.size(), bytes, [&](size_t i) { put_input(run, i); });
    for (size_t i = 0; i < run.inputs.size(); ++i)
      if (boxes[i] != one.program->inputs()[i].dims) run.inputs[i] = staging.inputs[i].data();
    for (size_t s = 0; s < run.extents.size(); ++s)
      staging.extents[s] = static_cast<int32_t>(run.extents[s]);
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      const Port& port = one.program->outputs()[o];
      if (run.boxes[o] != port.dims && staging_of(one, staging, o) == nullptr)
        staging.outputs[o].resize(static_cast<size_t>(port.bytes));
    }
    return {};
  }

  void put_input(Run& run, size_t i) const {
    const Specialisation& one = *run.ready->specialisation;
    const Port& port = one.program->inputs()[i];
    const Box& box = run.in_boxes[i];
    if (box == port.dims) return;
    // Padding of a checked index input must also contain valid indices.
    const bool clear = one.program->checks_input(static_cast<int64_t>(i));
    size_t o = 0;  // the output that uses its memory
    while (o < run.outputs.size() && one.inputs_of[o] != static_cast<int64_t>(i)) ++o;
    const bool joined = o < run.outputs.size() && run.boxes[o] != one.program->outputs()[o].dims;
    run.staging->put_input(i, run.inputs[i], box, joined ? run.boxes[o] : box, port.dims,
                           tensor::type_bytes(port.shape.type()), clear);
    if (joined) join_to(run, i, o);
  }

  // For an output in the staging copy of an input: the input's elements are in place before the
  // run, so they are copied to the output while they are still in the processor's cache.
  void join_to(Run& run, size_t i, size_t o) const {
    Staging& staging = *run.staging;
    const std::vector<Box>& boxes = run.in_boxes;
    const Port& port = run.ready->specialisation->program->inputs()[i];
    const int64_t element_bytes = tensor::type_bytes(port.shape.type());
    staging.copied[o].clear();
    for (size_t k = 0; k < run.inputs.size(); ++k)  // unless it overwrites another input
      if (k != i && overlap(run.outputs[o], run.boxes[o], element_bytes, run.inputs[k], boxes[k],
                            tensor::type_bytes(program_->inputs()[k].shape.type())))
        return;
    staging.copied[o] = boxes[i];
    copy_box(staging.inputs[i].data(), port.dims, run.outputs[o], run.boxes[o], boxes[i],
             element_bytes);
  }

  // The staging memory of an output that is not written to the caller's memory directly; null: not
  // allocated yet.
  static char* staging_of(const Specialisation& one, Staging& staging, size_t output) {
    const int64_t input = one.inputs_of[output];
    Bytes& own = staging.outputs[output];
    if (input < 0 || staging.inputs[static_cast<size_t>(input)].empty())
      return own.empty() ? nullptr : own.data();
    return staging.inputs[static_cast<size_t>(input)].data();
  }

  Status launch(Run& run) {
    Status status = launch_bound(run);
    give_back(*run.ready, std::move(run.staging));
    return status;
  }

  Status launch_bound(Run& run) {
    const Specialisation& one = *run.ready->specialisation;
    Context& context = *run.ready->context;
    auto number = static_cast<int64_t>(run.inputs.size());
    for (int64_t i = 0; i < number; ++i)
      HEDDLE_RETURN_IF_ERROR(context.bind_input(i, run.inputs[static_cast<size_t>(i)]));
    for (const int64_t symbol : one.bucket.told)
      HEDDLE_RETURN_IF_ERROR(
          context.bind_input(number++, &run.staging->extents[static_cast<size_t>(symbol)]));
    auto is_whole = [&](size_t i) { return run.boxes[i] == one.program->outputs()[i].dims; };
    for (size_t i = 0; i < run.outputs.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(
          context.bind_output(static_cast<int64_t>(i),
                              is_whole(i) ? run.outputs[i] : staging_of(one, *run.staging, i)));
    if (const Bounded& bounded = program_->bounded(); !bounded.range_growth.empty())
      bounded.set_ranges(one.bucket.bounds, run.extents, one.program->index_checks(),
                         context.index_checks());
    HEDDLE_RETURN_IF_ERROR(context.run());
    int64_t bytes = 0;  // to copy out
    for (size_t i = 0; i < run.outputs.size(); ++i)
      if (!is_whole(i) && run.staging->copied[i].empty()) bytes += one.program->outputs()[i].bytes;
    copy_all(workers_.get(), run.outputs.size(), bytes, [&](size_t i) {
      const Port& port = one.program->outputs()[i];
      if (!is_whole(i))
        copy_box(staging_of(one, *run.staging, i), port.dims, run.outputs[i], run.boxes[i],
                 run.boxes[i], tensor::type_bytes(port.shape.type()), run.staging->copied[i]);
    });
    last_ = run.ready;
    return {};
  }

  std::unique_ptr<Staging> take_staging(Ready& ready) {
    {
      const std::lock_guard lock(mutex_);
      if (!ready.free.empty()) {
        auto taken = std::move(ready.free.back());
        ready.free.pop_back();
        return taken;
      }
    }
    return std::make_unique<Staging>(inputs_.size(), outputs_.size(), said_.extents().size());
  }
  void give_back(Ready& ready, std::unique_ptr<Staging> staging) {
    const std::lock_guard lock(mutex_);
    ready.free.push_back(std::move(staging));
  }

  Result<Ready*> ready_for(const Sizes& extents) {
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Specialisation> one,
                            program_->specialise(extents));
    Ready& ready = ready_[one->bucket.bounds];
    if (!ready.context) {
      ready.specialisation = one;
      HEDDLE_ASSIGN_OR_RETURN(ready.context, one->program->make_context(cancellation_));
      ready.context->set_profile(profile_);
    }
    return &ready;
  }

  std::shared_ptr<BoundedProgram> program_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  RunExtents said_;
  std::map<Sizes, Ready> ready_;  // references to elements stay valid
  Ready* last_ = nullptr;
  std::shared_ptr<Workers> workers_;  // null: the caller's thread makes the copies
  std::mutex mutex_;                  // protects `free` of all Ready
  bool profile_ = false;
};

Result<std::unique_ptr<Context>> BoundedProgram::make_context(
    std::shared_ptr<runtime::Cancellation> cancellation) {
  return std::make_unique<BoundedContext>(shared_from_this(), std::move(cancellation));
}

}  // namespace

Result<std::shared_ptr<Program>> compile_bounded(const Model& model, const CompileOptions& options,
                                                 bool interpreted, SharedWeights* shared) {
  auto program = std::make_shared<BoundedProgram>(model, options, shared);
  HEDDLE_RETURN_IF_ERROR(program->begin(interpreted));
  return std::shared_ptr<Program>(std::move(program));
}

Result<std::shared_ptr<Program>> load_bounded(const Model& model,
                                              std::shared_ptr<const program::Saved> saved,
                                              const DeviceRequest& where,
                                              const std::string& dump_directory) {
  auto program = std::make_shared<BoundedProgram>(model, std::move(saved), where, dump_directory);
  HEDDLE_RETURN_IF_ERROR(program->begin(false));
  return std::shared_ptr<Program>(std::move(program));
}

}  // namespace heddle::api
