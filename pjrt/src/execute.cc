// Runs of executables.
#include <algorithm>
#include <optional>

#include "buffer.h"
#include "call.h"
#include "executable.h"
#include "functions.h"

struct PJRT_ExecuteContext {};

namespace heddle::pjrt {
namespace {

// One run: its memory, which it keeps alive, and what it waits for.
class Run {
 public:
  explicit Run(std::shared_ptr<Executable> of) : executable_(std::move(of)) {}

  void take_inputs(PJRT_Buffer* const* arguments);
  // Of output i the memory of the donated input donors[i], or memory of its own.
  void take_outputs(PJRT_Buffer* const* arguments, const std::vector<int64_t>& donors,
                    const PJRT_Memory* memory);
  // Null: the run is over. Throws where it failed, or an input has.
  std::shared_ptr<Moment> start(Worker* worker);
  // What it keeps of its memory is no longer of use here.
  std::vector<std::shared_ptr<Storage>> give_outputs() { return std::move(outputs_); }

 private:
  void run();
  std::optional<Failure> try_run();
  void let_go();

  std::shared_ptr<Executable> executable_;
  std::vector<std::shared_ptr<Storage>> inputs_, outputs_;
  std::vector<std::shared_ptr<Moment>> awaited_;
  bool follows_ = false;    // it overwrites what earlier runs of the worker read
  bool is_placed_ = false;  // in the worker's order
};

void check_argument(const ArrayShape& wanted, const PJRT_Buffer* buffer, size_t number) {
  const ArrayShape& got = given(buffer, "an argument")->shape;
  // What stands for a token has no values; JAX passes an array without elements.
  if (got == wanted || wanted.type == PJRT_Buffer_Type_TOKEN) return;
  invalid("argument " + std::to_string(number) + " is " + to_string(got) + ", the program wants " +
          to_string(wanted));
}

// Of each output the donated argument whose memory it gets; -1: none.
std::vector<int64_t> donated(const Executable& executable, const PJRT_ExecuteOptions& options) {
  std::vector<int64_t> result = executable.donors();
  const int64_t* kept = options.non_donatable_input_indices;
  for (int64_t& input : result)
    if (std::find(kept, kept + options.num_non_donatable_input_indices, input) !=
        kept + options.num_non_donatable_input_indices)
      input = -1;
  return result;
}

void check_donation(const std::vector<int64_t>& donors, PJRT_Buffer* const* arguments,
                    size_t count) {
  for (const int64_t donor : donors) {
    if (donor < 0) continue;
    if (std::count(arguments, arguments + count, arguments[donor]) > 1)
      invalid("Attempt to donate the same buffer twice in Execute(): it is argument " +
              std::to_string(donor) + " and another one");
  }
}

void Run::take_inputs(PJRT_Buffer* const* arguments) {
  const std::vector<ArrayShape>& wanted = executable_->inputs();
  for (size_t i = 0; i < wanted.size(); ++i) {
    check_argument(wanted[i], arguments[i], i);
    inputs_.push_back(arguments[i]->hold());
    const std::shared_ptr<Moment>& ready = arguments[i]->ready;
    if (ready == nullptr) continue;
    if (ready->is_set())
      wait_for(ready);
    else
      awaited_.push_back(ready);
  }
}

void Run::take_outputs(PJRT_Buffer* const* arguments, const std::vector<int64_t>& donors,
                       const PJRT_Memory* memory) {
  for (size_t i = 0; i < donors.size(); ++i) {
    std::shared_ptr<Storage> storage;
    if (donors[i] >= 0) {
      const auto donor = static_cast<size_t>(donors[i]);
      inputs_[donor].reset();
      bool exclusive = false;
      inputs_[donor] = arguments[donor]->take(&exclusive);
      if (inputs_[donor] == nullptr) invalid("Buffer has been deleted or donated");
      // Where somebody else may read it, it stays as it is.
      if (exclusive && inputs_[donor]->is_ours()) storage = inputs_[donor];
      follows_ |= storage != nullptr && storage->waiting_runs > 0;
    }
    if (storage == nullptr)
      storage = std::make_shared<Storage>(executable_->outputs()[i].bytes, memory->client->counts);
    outputs_.push_back(std::move(storage));
  }
}

void Run::run() {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const auto& input : inputs_) inputs.push_back(input->data());
  for (const auto& output : outputs_) outputs.push_back(output->data());
  executable_->run(inputs, outputs);
}

std::optional<Failure> Run::try_run() {
  try {
    for (const auto& moment : awaited_) wait_for(moment);
    run();
    return {};
  } catch (...) {
    return failure_of_exception();
  }
}

void Run::let_go() {
  for (auto* all : {&inputs_, &outputs_})
    for (auto& storage : *all) {
      if (is_placed_) --storage->waiting_runs;
      storage.reset();
    }
}

std::shared_ptr<Moment> Run::start(Worker* worker) {
  const bool must_wait = follows_ || !awaited_.empty();
  if (executable_->calls_python()) {
    if (must_wait) worker->drain();
    for (const auto& moment : awaited_) wait_for(moment);
    run();
    return nullptr;
  }
  if (!must_wait && !(executable_->is_long() && worker->suits_this_thread())) {
    run();
    return nullptr;
  }
  auto done = std::make_shared<Moment>();
  auto mine = std::make_shared<Run>(*this);
  worker->add(
      [mine, done] {
        std::optional<Failure> failure = mine->try_run();
        mine->let_go();
        done->set(std::move(failure));
      },
      [&mine] {
        mine->is_placed_ = true;
        for (const auto* all : {&mine->inputs_, &mine->outputs_})
          for (const auto& storage : *all) ++storage->waiting_runs;
      });
  return done;
}

}  // namespace

void ExecuteContext_Create(PJRT_ExecuteContext_Create_Args& args) {
  args.context = new PJRT_ExecuteContext;
}
void ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args& args) { delete args.context; }

void LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args& args) {
  const std::shared_ptr<Executable> executable = live(args.executable);
  const auto options = read_struct(args.options, "options");
  if (args.num_devices != 1)
    invalid("a run on " + std::to_string(args.num_devices) + " devices; heddle has one");
  if (options.num_send_ops > 0 || options.num_recv_ops > 0)
    unimplemented("callbacks of send and receive");
  const std::vector<ArrayShape>& wanted = executable->inputs();
  if (args.num_args != wanted.size())
    invalid("the program " + executable->name() + " has " + std::to_string(wanted.size()) +
            " inputs, got " + std::to_string(args.num_args));
  PJRT_Buffer* const* arguments =
      args.num_args > 0 ? given(args.argument_lists, "argument_lists")[0] : nullptr;
  const std::vector<int64_t> donors = donated(*executable, options);
  PJRT_Memory* memory = args.executable->client->default_memory();
  PJRT_Buffer** results = donors.empty() ? nullptr : given(args.output_lists, "output_lists")[0];
  Run run(executable);
  run.take_inputs(arguments);
  check_donation(donors, arguments, args.num_args);
  run.take_outputs(arguments, donors, memory);
  const std::shared_ptr<Moment> done = run.start(&args.executable->client->worker);
  std::vector<std::shared_ptr<Storage>> outputs = run.give_outputs();
  for (size_t i = 0; i < donors.size(); ++i)
    results[i] = new PJRT_Buffer(memory, executable->outputs()[i], std::move(outputs[i]), done);
  if (args.device_complete_events != nullptr) args.device_complete_events[0] = make_event(done);
}

}  // namespace heddle::pjrt
