// Compiled programs.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "client.h"
#include "types.h"

struct PJRT_Layouts_MemoryLayout;

namespace heddle::pjrt {

// What frees a handle of heddle.h.
template <typename Handle, void (*release)(Handle*)>
struct Freed {
  void operator()(Handle* handle) const { release(handle); }
};
using ModelHandle = std::unique_ptr<heddle_model, Freed<heddle_model, heddle_model_free>>;
using ProgramHandle = std::unique_ptr<heddle_program, Freed<heddle_program, heddle_program_free>>;
using ContextHandle = std::unique_ptr<heddle_context, Freed<heddle_context, heddle_context_free>>;

// A program with what is told of it. Immutable but for its idle contexts; any thread may run it.
class Executable {
 public:
  // `code`: StableHLO (portable bytecode or text) or a serialised HloModuleProto; `request`: a
  // CompileOptionsProto. Throws what the compilation says.
  static std::shared_ptr<Executable> compile(const Options& client, std::string_view code,
                                             std::string_view request);
  // What serialize() gave. Throws where it is something else, or of another version.
  static std::shared_ptr<Executable> load(const Options& client, std::string_view bytes);
  std::string serialize() const;

  // inputs[i], outputs[i]: memory of input i, output i. May be called by several threads at once.
  // Throws where the run fails.
  void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs);

  const std::string& name() const { return name_; }
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& code() const { return code_; }
  const std::string& request() const { return request_; }
  const std::vector<ArrayShape>& inputs() const { return inputs_; }
  const std::vector<ArrayShape>& outputs() const { return outputs_; }
  // A run takes long enough to be worth another thread. False before the first one.
  bool is_long() const { return usual_ns_.load(std::memory_order_relaxed) > kLongNs; }
  // Its runs wait for Python's lock: not on a thread that one with the lock may wait for.
  bool calls_python() const { return calls_python_; }
  // Of each output the donated input whose memory it may take; -1: none.
  const std::vector<int64_t>& donors() const { return donors_; }
  heddle_program_info info() const;

  // As the interface wants them told, for as long as the executable lives.
  struct Told {
    std::vector<PJRT_Buffer_Type> types;
    std::vector<int64_t> dims;
    std::vector<size_t> ranks;
    std::vector<const char*> memory_kinds;
    std::vector<size_t> memory_kind_sizes;
    std::vector<PJRT_NamedValue> costs;
  };
  const Told& told() const { return told_; }
  // For the extension of layouts, which makes them when it is asked first.
  std::once_flag layouts_once;
  std::vector<PJRT_Layouts_MemoryLayout*> layouts;

 private:
  using Clock = std::chrono::steady_clock;
  // What handing over costs, a few times.
  static constexpr int64_t kLongNs = 50'000;
  Executable() = default;
  void finish(ModelHandle model, const Options& options);
  void tell();
  bool is_timed();
  void note_time(Clock::duration taken);

  std::string name_, fingerprint_, code_, request_;
  ProgramHandle program_;
  std::vector<ArrayShape> inputs_, outputs_;
  std::vector<int64_t> donors_;
  Told told_;
  bool calls_python_ = false;
  std::atomic<int64_t> usual_ns_ = 0;  // 0: it has not run
  std::atomic<uint32_t> runs_ = 0;
  std::mutex mutex_;
  std::vector<ContextHandle> idle_;
};

}  // namespace heddle::pjrt

struct PJRT_Executable {
  std::shared_ptr<heddle::pjrt::Executable> executable;
};

struct PJRT_LoadedExecutable {
  PJRT_Client* client;
  // What runs; null once it was deleted.
  std::shared_ptr<heddle::pjrt::Executable> executable() const;
  void drop();

  PJRT_LoadedExecutable(PJRT_Client* of, std::shared_ptr<heddle::pjrt::Executable> what)
      : client(of), executable_(std::move(what)) {}

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<heddle::pjrt::Executable> executable_;
};

namespace heddle::pjrt {
// Throws where it was deleted.
std::shared_ptr<Executable> live(const PJRT_LoadedExecutable* loaded);
}  // namespace heddle::pjrt
