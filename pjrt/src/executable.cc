#include "executable.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "error.h"
#include "file.h"

namespace heddle::pjrt {
namespace {

// FNV-1a.
uint64_t hash(std::string_view text, uint64_t state = 0xcbf29ce484222325) {
  for (const char c : text) state = (state ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return state;
}

ModelHandle parse(const char* name, std::string_view bytes) {
  heddle_model* model = nullptr;
  check(heddle_model_parse(name, bytes.data(), bytes.size(), nullptr, &model));
  return ModelHandle(model);
}

ArrayShape shape_of(const heddle_port& port) {
  const PJRT_Buffer_Type type = pjrt_type(port.type);
  if (port.rank < 0 || type == PJRT_Buffer_Type_INVALID)
    unimplemented(std::string(port.name) + ": PJRT has no arrays of this type or shape (" +
                  heddle_type_name(port.type) + ")");
  return {type, port.dims, static_cast<size_t>(port.rank)};
}

constexpr std::string_view kMagic = "heddle-pjrt 1\n";

void put(std::string& to, std::string_view part) {
  const uint64_t size = part.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof size);
  to.append(part);
}

std::string_view get(std::string_view& from) {
  uint64_t size = 0;
  if (from.size() < sizeof size) invalid("a serialised executable ends too early");
  std::memcpy(&size, from.data(), sizeof size);
  from.remove_prefix(sizeof size);
  if (size > from.size()) invalid("a serialised executable ends too early");
  const std::string_view part = from.substr(0, size);
  from.remove_prefix(size);
  return part;
}

}  // namespace

std::shared_ptr<Executable> Executable::compile(const Options& client, std::string_view code,
                                                std::string_view request) {
  const Options options = options_for(client, read_compile_options(request));
  std::shared_ptr<Executable> made(new Executable);
  made->code_ = code;
  made->request_ = request;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64,
                hash(platform_version(), hash(options.text(), hash(code))));
  made->fingerprint_ = digits;
  made->finish(parse("program", code), options);
  return made;
}

std::shared_ptr<Executable> Executable::load(const Options& client, std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) invalid("no executable that heddle's plug-in has serialised");
  bytes.remove_prefix(kMagic.size());
  if (get(bytes) != platform_version())
    invalid("the serialised executable is not of " + platform_version());
  std::shared_ptr<Executable> made(new Executable);
  made->fingerprint_ = get(bytes);
  made->code_ = get(bytes);
  made->request_ = get(bytes);
  made->finish(parse("executable", get(bytes)), client);
  return made;
}

std::string Executable::serialize() const {
  std::string bytes(kMagic);
  put(bytes, platform_version());
  put(bytes, fingerprint_);
  put(bytes, code_);
  put(bytes, request_);
  const TemporaryFile file;
  check(heddle_program_save(program_.get(), file.path().c_str()));
  put(bytes, file.read());
  return bytes;
}

void Executable::finish(ModelHandle model, const Options& options) {
  heddle_model_info about{sizeof about};
  heddle_model_get_info(model.get(), &about);
  name_ = about.name;
  heddle_compile_options with = options.for_heddle();
  with.consume_model = 1;
  heddle_program* program = nullptr;
  check(heddle_compile(model.get(), &with, &program));
  program_.reset(program);
  const heddle_program_info has = info();
  heddle_port port{sizeof port};
  for (int64_t i = 0; i < has.inputs; ++i) {
    heddle_program_input(program, i, &port);
    inputs_.push_back(shape_of(port));
  }
  for (int64_t i = 0; i < has.outputs; ++i) {
    heddle_program_output(program, i, &port);
    outputs_.push_back(shape_of(port));
    donors_.push_back(heddle_program_output_donor(program, i));
  }
  // The target of the Python side's custom calls (python/jax_plugins/heddle/_host.py).
  calls_python_ = code_.find("heddle_python") != std::string::npos;
  tell();
}

heddle_program_info Executable::info() const {
  heddle_program_info result{sizeof result};
  heddle_program_get_info(program_.get(), &result);
  return result;
}

void Executable::tell() {
  const char* kind = PJRT_Client::kMemoryKinds[0];
  for (const ArrayShape& shape : outputs_) {
    told_.types.push_back(shape.type);
    told_.dims.insert(told_.dims.end(), shape.dims.begin(), shape.dims.end());
    told_.ranks.push_back(shape.dims.size());
    told_.memory_kinds.push_back(kind);
    told_.memory_kind_sizes.push_back(std::strlen(kind));
  }
  const heddle_program_info has = info();
  const auto cost = [this](const char* name, int64_t value) {
    PJRT_NamedValue named{};
    named.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    named.name = name;
    named.name_size = std::strlen(name);
    named.type = PJRT_NamedValue_kFloat;
    named.float_value = static_cast<float>(value);
    named.value_size = 1;
    told_.costs.push_back(named);
  };
  cost("flops", has.flops);
  cost("bytes accessed", has.min_bytes);
}

void Executable::run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
  ContextHandle context;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      context = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (context == nullptr) {
    heddle_context* made = nullptr;
    check(heddle_context_create(program_.get(), &made));
    context.reset(made);
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    check(heddle_context_bind_input(context.get(), static_cast<int64_t>(i), inputs[i]));
  for (size_t i = 0; i < outputs.size(); ++i)
    check(heddle_context_bind_output(context.get(), static_cast<int64_t>(i), outputs[i]));
  const bool timed = is_timed();
  const auto start = timed ? Clock::now() : Clock::time_point{};
  check(heddle_context_run(context.get()));
  if (timed) note_time(Clock::now() - start);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
}

// Runs of short programs are timed now and then: two looks at a clock are a few hundredths of one.
bool Executable::is_timed() {
  constexpr uint32_t kEvery = 16;
  return runs_.fetch_add(1, std::memory_order_relaxed) % kEvery == 0 || is_long();
}

// Notes the best of late: the first run and one that was disturbed say little.
void Executable::note_time(Clock::duration taken) {
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
  const int64_t usual = usual_ns_.load(std::memory_order_relaxed);
  const bool is_less = usual == 0 || ns < usual;
  usual_ns_.store(is_less ? ns : usual + (ns - usual) / 8, std::memory_order_relaxed);
}

std::shared_ptr<Executable> live(const PJRT_LoadedExecutable* loaded) {
  std::shared_ptr<Executable> executable = given(loaded, "executable")->executable();
  if (executable == nullptr) invalid("the executable has been deleted");
  return executable;
}

}  // namespace heddle::pjrt

std::shared_ptr<heddle::pjrt::Executable> PJRT_LoadedExecutable::executable() const {
  const std::lock_guard lock(mutex_);
  return executable_;
}

void PJRT_LoadedExecutable::drop() {
  std::shared_ptr<heddle::pjrt::Executable> last;  // freed without the lock
  const std::lock_guard lock(mutex_);
  last = std::move(executable_);
}
