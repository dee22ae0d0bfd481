// Runs of executables.
#include <algorithm>

#include "buffer.h"
#include "call.h"
#include "executable.h"
#include "functions.h"

struct PJRT_ExecuteContext {};

namespace heddle::pjrt {
namespace {

// The memory of one run: of its arguments, which it keeps alive, and of its results.
struct Run {
  std::vector<std::shared_ptr<Storage>> inputs, outputs;
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
  Run run;
  std::vector<const void*> inputs;
  for (size_t i = 0; i < wanted.size(); ++i) {
    check_argument(wanted[i], arguments[i], i);
    run.inputs.push_back(arguments[i]->wait());
    inputs.push_back(run.inputs.back()->data());
  }
  const std::vector<int64_t> donors = donated(*executable, options);
  check_donation(donors, arguments, args.num_args);

  PJRT_Memory* memory = args.executable->client->default_memory();
  std::vector<void*> outputs;
  for (size_t i = 0; i < donors.size(); ++i) {
    std::shared_ptr<Storage> storage;
    if (donors[i] >= 0) {
      const auto donor = static_cast<size_t>(donors[i]);
      run.inputs[donor].reset();
      bool exclusive = false;
      storage = arguments[donor]->take(&exclusive);
      if (!exclusive || !storage->is_ours()) {
        run.inputs[donor] = std::move(storage);  // somebody else may read it: it stays as it is
        storage = nullptr;
      }
    }
    if (storage == nullptr)
      storage = std::make_shared<Storage>(executable->outputs()[i].bytes, memory->client->counts);
    outputs.push_back(storage->data());
    run.outputs.push_back(std::move(storage));
  }
  executable->run(inputs, outputs);

  PJRT_Buffer** results = outputs.empty() ? nullptr : given(args.output_lists, "output_lists")[0];
  for (size_t i = 0; i < outputs.size(); ++i)
    results[i] = new PJRT_Buffer(memory, executable->outputs()[i], std::move(run.outputs[i]));
  if (args.device_complete_events != nullptr) args.device_complete_events[0] = make_event(nullptr);
}

}  // namespace heddle::pjrt
