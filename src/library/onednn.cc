#include "library/onednn.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace heddle::library::onednn {
namespace {

constexpr size_t kAlignment = 64;
// Blocks of this size and more request large pages, as in runtime.
constexpr size_t kHugePage = size_t{2} << 20;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Bytes = std::unique_ptr<void, Free>;

Bytes allocate(size_t bytes) {
  const size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  const size_t size = (bytes + alignment) / alignment * alignment;
  Bytes memory(std::aligned_alloc(alignment, size));
  if (memory && alignment == kHugePage) madvise(memory.get(), size, MADV_HUGEPAGE);
  return memory;
}

// The process's only engine and its functions; never freed, as the library is never closed.
struct Engine {
  Api api;
  Object engine = nullptr;
};

// A memory object over bytes that it does not own.
class Memory {
 public:
  Memory(const Engine& engine, Descriptor desc, void* data) : api_(&engine.api) {
    if (api_->memory_create(&memory_, desc, engine.engine, data) != 0) memory_ = nullptr;
  }
  Memory(Memory&& other) noexcept
      : api_(other.api_), memory_(std::exchange(other.memory_, nullptr)) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (memory_ != nullptr) api_->memory_destroy(memory_);
  }
  Object get() const { return memory_; }

 private:
  const Api* api_;
  Object memory_ = nullptr;
};

// Per thread, to run primitives: a stream, and a scratchpad that grows.
class ThreadState {
 public:
  static ThreadState& mine(const Engine& engine) {
    thread_local ThreadState state(engine);
    return state;
  }
  ~ThreadState() {
    if (stream_ != nullptr) engine_.api.stream_destroy(stream_);
  }
  Object stream() const { return stream_; }
  void* scratchpad(size_t bytes) {
    if (bytes > bytes_ || !scratchpad_) {
      scratchpad_ = allocate(bytes);
      bytes_ = scratchpad_ ? bytes : 0;
    }
    return scratchpad_.get();
  }

 private:
  explicit ThreadState(const Engine& engine) : engine_(engine) {
    if (engine.api.stream_create(&stream_, engine.engine, kInOrder) != 0) stream_ = nullptr;
  }
  const Engine& engine_;
  Object stream_ = nullptr;
  Bytes scratchpad_;
  size_t bytes_ = 0;
};

// One primitive for the shape of a part. Its descriptor keeps the memory descriptors alive.
class Primitive {
 public:
  // Null, and the error code: the library has none.
  static std::shared_ptr<const Primitive> make(const Engine& engine, const Operation& operation,
                                               bool fixed_b, Code* code) {
    const OneThread alone(engine.api);
    const std::shared_ptr<Primitive> made(new Primitive(engine, operation));
    const Described described =
        describe(engine.api, engine.engine, operation, made->arrays_, fixed_b);
    made->desc_ = described.desc;
    *code = described.code;
    if (*code == 0) *code = engine.api.primitive_create(&made->primitive_, made->desc_);
    if (*code != 0) return nullptr;
    const char* words = nullptr;
    if (engine.api.primitive_desc_query(made->desc_, kQueryImplementation, 0, &words) == 0 && words)
      made->implementation_ = words;
    made->scratchpad_ = engine.api.primitive_desc_query_md(made->desc_, kQueryScratchpad, 0);
    if (made->scratchpad_ != nullptr)
      made->scratchpad_bytes_ = engine.api.memory_desc_get_size(made->scratchpad_);
    return made;
  }
  ~Primitive() {
    if (primitive_ != nullptr) engine_.api.primitive_destroy(primitive_);
    if (desc_ != nullptr) engine_.api.primitive_desc_destroy(desc_);
  }

  const std::string& implementation() const { return implementation_; }
  const Arrays& arrays() const { return arrays_; }
  // The primitive's preferred layout of B.
  Descriptor wanted_b() const {
    return engine_.api.primitive_desc_query_md(desc_, kQueryWeights, 0);
  }

  // On the calling thread only.
  Code run(Object a, Object b, Object bias, Object c) const {
    ThreadState& thread = ThreadState::mine(engine_);
    if (thread.stream() == nullptr) return kOutOfMemory;
    Argument arguments[5] = {{kArgumentA, a}, {kArgumentB, b}, {kArgumentC, c}};
    int count = 3;
    if (bias != nullptr) arguments[count++] = {kArgumentBias, bias};
    if (scratchpad_bytes_ == 0) return execute(thread, arguments, count);
    void* bytes = thread.scratchpad(scratchpad_bytes_);
    if (bytes == nullptr) return kOutOfMemory;
    const Memory scratchpad(engine_, scratchpad_, bytes);
    arguments[count++] = {kArgumentScratchpad, scratchpad.get()};
    return execute(thread, arguments, count);
  }

 private:
  Primitive(const Engine& engine, const Operation& operation)
      : engine_(engine), arrays_(engine.api, operation) {}

  Code execute(const ThreadState& thread, const Argument* arguments, int count) const {
    const Code code = engine_.api.primitive_execute(primitive_, thread.stream(), count, arguments);
    return code != 0 ? code : engine_.api.stream_wait(thread.stream());
  }

  const Engine& engine_;
  Arrays arrays_;
  Object desc_ = nullptr, primitive_ = nullptr;
  Descriptor scratchpad_ = nullptr;
  size_t scratchpad_bytes_ = 0;
  std::string implementation_;
};

// Primitives by shape, shared while they are in use.
class Primitives {
 public:
  std::shared_ptr<const Primitive> get(const Engine& engine, const Operation& operation,
                                       bool fixed_b, Code* code) {
    const std::string key = to_string(operation) + (fixed_b ? " fixed" : "");
    const std::lock_guard lock(mutex_);
    std::shared_ptr<const Primitive> known = known_[key].lock();
    *code = 0;
    if (!known) known_[key] = known = Primitive::make(engine, operation, fixed_b, code);
    return known;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Primitive>> known_;
};

// B in a primitive's preferred layout, reordered from its original one.
class Reordered {
 public:
  static std::unique_ptr<Reordered> make(const Engine& engine, const Primitive& primitive,
                                         const void* data) {
    std::unique_ptr<Reordered> made(new Reordered(engine));
    const Api& api = engine.api;
    const Descriptor from = primitive.arrays().b.get(), to = primitive.wanted_b();
    Memory source(engine, from, const_cast<void*>(data));
    if (source.get() == nullptr) return nullptr;
    if (api.memory_desc_equal(from, to) != 0) {
      made->memory_.emplace(std::move(source));
      return made;
    }
    const OneThread alone(api);
    made->bytes_ = allocate(api.memory_desc_get_size(to));
    if (!made->bytes_) return nullptr;
    made->memory_.emplace(engine, to, made->bytes_.get());
    Object desc = nullptr, reorder = nullptr;
    Code code = made->memory_->get() == nullptr ? kOutOfMemory : 0;
    if (code == 0)
      code =
          api.reorder_primitive_desc_create(&desc, from, engine.engine, to, engine.engine, nullptr);
    if (code == 0) code = api.primitive_create(&reorder, desc);
    if (code == 0) {
      const Argument arguments[] = {{kArgumentA, source.get()}, {kArgumentC, made->object()}};
      const Object stream = ThreadState::mine(engine).stream();
      code =
          stream == nullptr ? kOutOfMemory : api.primitive_execute(reorder, stream, 2, arguments);
      if (code == 0) code = api.stream_wait(stream);
    }
    if (reorder != nullptr) api.primitive_destroy(reorder);
    if (desc != nullptr) api.primitive_desc_destroy(desc);
    return code == 0 ? std::move(made) : nullptr;
  }
  Object object() const { return memory_->get(); }

 private:
  explicit Reordered(const Engine& engine) : engine_(engine) {}
  const Engine& engine_;
  Bytes bytes_;  // none: B is used as it is
  std::optional<Memory> memory_;
};

struct Task {
  std::shared_ptr<const Primitive> primitive;
  int64_t a = 0, b = 0, bias = 0, c = 0;  // bytes
  std::shared_ptr<const Reordered> fixed_b;
};

class OneDnnCall : public Call {
 public:
  OneDnnCall(const Engine& engine, const Operation& operation, const Fixed& fixed,
             std::vector<Task> tasks)
      : engine_(engine), has_bias_(operation.bias), fixed_(fixed), tasks_(std::move(tasks)) {
    implementation_ = tasks_.front().primitive->implementation();
  }

  int64_t tasks() const override { return std::ssize(tasks_); }
  const std::string& implementation() const override { return implementation_; }

  Status prepare(void* const* buffers) override {
    if (!fixed_.b || ready_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    if (ready_.load(std::memory_order_relaxed)) return {};
    // Parts that read the same B share its reordered copy.
    std::map<std::pair<int64_t, const Primitive*>, std::shared_ptr<const Reordered>> made;
    for (Task& task : tasks_) {
      std::shared_ptr<const Reordered>& one = made[{task.b, task.primitive.get()}];
      if (!one) one = Reordered::make(engine_, *task.primitive, at(buffers[1], task.b));
      if (!one)
        return machine_error("oneDNN: the weights of {} cannot be reordered", implementation_);
      task.fixed_b = one;
    }
    ready_.store(true, std::memory_order_release);
    return {};
  }

  Status run(void* const* buffers, int64_t begin, int64_t end) const override {
    const OneThread alone(engine_.api);
    for (int64_t i = begin; i < end; ++i) {
      const Code code = run_task(tasks_[static_cast<size_t>(i)], buffers);
      if (code != 0) return machine_error("oneDNN: {} failed with code {}", implementation_, code);
    }
    return {};
  }

 private:
  static void* at(void* base, int64_t offset) { return static_cast<char*>(base) + offset; }

  Code run_task(const Task& task, void* const* buffers) const {
    const Arrays& arrays = task.primitive->arrays();
    const Memory a(engine_, arrays.a.get(), at(buffers[0], task.a));
    const Memory c(engine_, arrays.c.get(), at(buffers[has_bias_ ? 3 : 2], task.c));
    std::optional<Memory> b, bias;
    if (!task.fixed_b) b.emplace(engine_, arrays.b.get(), at(buffers[1], task.b));
    if (has_bias_) bias.emplace(engine_, arrays.bias.get(), at(buffers[2], task.bias));
    const Object b_object = task.fixed_b ? task.fixed_b->object() : b->get();
    if (a.get() == nullptr || b_object == nullptr || c.get() == nullptr ||
        (bias && bias->get() == nullptr))
      return kOutOfMemory;
    return task.primitive->run(a.get(), b_object, bias ? bias->get() : nullptr, c.get());
  }

  const Engine& engine_;
  bool has_bias_;
  Fixed fixed_;
  std::vector<Task> tasks_;
  std::string implementation_;
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
};

class OneDnn : public Library {
 public:
  explicit OneDnn(const Engine& engine) : engine_(engine) {
    facts_ = {kOneDnn, engine.api.version, engine.api.path,
              engine.api.omp_set_num_threads != nullptr ? "openmp" : "sequential"};
  }
  const Facts& facts() const override { return facts_; }

  CallOrNot make_call(const Operation& operation, const Fixed& fixed, int64_t count) override {
    CallOrNot made;
    if (Status fits = check(operation); !fits) {
      made.decision = Decision::no("library-shape", "{}", fits.error().message);
      return made;
    }
    std::vector<Task> tasks;
    constexpr int64_t kFloatBytes = 4;
    for (const Part& part : split(operation, count)) {
      Code code = 0;
      Task task{primitives_.get(engine_, part.operation, fixed.b, &code),
                part.a * kFloatBytes,
                part.b * kFloatBytes,
                part.bias * kFloatBytes,
                part.c * kFloatBytes,
                nullptr};
      if (!task.primitive) {
        const bool no_form = code == kUnimplemented || code == kInvalid;
        made.decision =
            Decision::no(no_form ? "library-shape" : "library-failed", "oneDNN {} answers {} to {}",
                         facts_.version, code, to_string(part.operation));
        return made;
      }
      if (task.primitive->implementation().starts_with("ref")) {
        made.decision =
            Decision::no("library-reference", "oneDNN {} has only {} for {}", facts_.version,
                         task.primitive->implementation(), to_string(part.operation));
        return made;
      }
      tasks.push_back(std::move(task));
    }
    made.call = std::make_unique<OneDnnCall>(engine_, operation, fixed, std::move(tasks));
    return made;
  }

 private:
  const Engine& engine_;
  Facts facts_;
  Primitives primitives_;
};

// The instruction sets that the library may use on the target: dnnl_cpu_isa_t.
int isa_of(const target::Target& target) {
  constexpr int kSse41 = 0x1, kAvx2 = 0x7, kAll = 0;
  if (target.has("avx512f")) return kAll;
  return target.has("avx2") ? kAvx2 : kSse41;
}

// The library as first opened in the process.
struct Only {
  std::mutex mutex;
  std::string path;
  int isa = 0;
  bool tried = false;
  Opened opened;
};

Opened open_first(const std::string& path, int isa) {
  Opened result;
  auto* engine = new Engine;  // never freed, like the library
  result.decision = load(path, &engine->api);
  if (!result.decision) return result;
  if (isa != 0 && engine->api.set_max_cpu_isa(isa) != 0) {
    result.decision = Decision::no(
        "library-isa", "{} was used before with a larger instruction set", engine->api.path);
    return result;
  }
  if (engine->api.engine_create(&engine->engine, kCpu, 0) != 0) {
    result.decision =
        Decision::no("library-failed", "{} has no engine for this processor", engine->api.path);
    return result;
  }
  result.library = std::make_shared<OneDnn>(*engine);
  return result;
}

}  // namespace

Opened open_library(const std::string& path, const target::Target& target) {
  static Only& only = *new Only;
  const int isa = isa_of(target);
  const std::lock_guard lock(only.mutex);
  if (!only.tried || (!only.opened.library && path != only.path)) {
    only.tried = true;
    only.path = path;
    only.isa = isa;
    only.opened = open_first(path, isa);
  }
  if (!only.opened.library || only.isa == isa) return only.opened;
  // A smaller instruction set than the target's is only slower; a larger one would not run there.
  if (only.isa != 0 && (isa == 0 || only.isa < isa)) return only.opened;
  return {nullptr,
          Decision::no("library-isa",
                       "oneDNN was opened in this process for a larger instruction set than {} has",
                       target.name)};
}

}  // namespace heddle::library::onednn
