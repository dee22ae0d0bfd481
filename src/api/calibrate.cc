#include "api/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>

#include "api/calibrate_fit.h"
#include "api/calibrate_texts.h"
#include "api/compiled.h"
#include "compiler/compiler.h"
#include "hlo/text.h"
#include "schedule/gemm_tiles.h"
#include "target/clock.h"

namespace heddle::api {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsEach = 0.12;  // limit for one program
constexpr double kBatchNs = 200e3;
constexpr int64_t kFarBytes = 96 << 20;  // an array larger than any cache

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

// A program with its own memory.
class Sample {
 public:
  static Result<Sample> make(const std::string& text, const target::Target& target, int threads,
                             compiler::Fuse fuse = compiler::Fuse::stitch) {
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, hlo::parse_module(text));
    Settings settings;
    settings.target = target;
    settings.threads = threads;
    settings.compiler.fuse = fuse;
    settings.explain = true;
    const std::unique_ptr<Model> model = Model::from_module(module->clone());
    Sample result;
    result.threads_ = threads;
    HEDDLE_ASSIGN_OR_RETURN(result.program_,
                            compile_for_device(std::move(module), *model, settings));
    HEDDLE_ASSIGN_OR_RETURN(result.context_, result.program_->make_context());
    std::vector<void*> inputs;
    for (const Port& port : result.program_->inputs())
      inputs.push_back(result.allocate(port.bytes));
    HEDDLE_RETURN_IF_ERROR(model->random_inputs(1, inputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(result.context_->bind_input(static_cast<int64_t>(i), inputs[i]));
    for (size_t i = 0; i < result.program_->outputs().size(); ++i)
      HEDDLE_RETURN_IF_ERROR(result.context_->bind_output(
          static_cast<int64_t>(i), result.allocate(result.program_->outputs()[i].bytes)));
    return result;
  }

  // Time of one run: the fastest of many batches. One thread is timed by its own clock, which stops
  // while others have the core.
  Result<double> best_ns() const {
    HEDDLE_RETURN_IF_ERROR(context_->run());
    const Clock::time_point begin = Clock::now();
    double best = 0;
    int64_t runs = 1;
    for (int batch = 0;; ++batch) {
      const double start = now_ns();
      for (int64_t i = 0; i < runs; ++i) HEDDLE_RETURN_IF_ERROR(context_->run());
      const double ns = now_ns() - start;
      const Clock::time_point end = Clock::now();
      const double each = ns / static_cast<double>(runs);
      if (batch == 0 || each < best) best = each;
      const double seconds = std::chrono::duration<double>(end - begin).count();
      if ((seconds > kSecondsEach && batch >= 3) || batch >= 400) return best;
      if (ns < kBatchNs / 2) runs *= 2;
    }
  }

  double predicted_ns() const {
    double total = 0;
    for (const auto& kernel : program_->report().kernels) total += kernel.predicted_ns;
    return total;
  }

 private:
  double now_ns() const {
    timespec now{};
    clock_gettime(threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
  }

  void* allocate(int64_t bytes) {
    const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 127) / 64 * 64;
    memory_.emplace_back(std::aligned_alloc(64, size));
    if (!memory_.back()) throw std::bad_alloc();
    std::fill_n(static_cast<char*>(memory_.back().get()), size, 0);
    return memory_.back().get();
  }

  int threads_ = 1;
  std::vector<Memory> memory_;
  std::shared_ptr<Program> program_;
  std::unique_ptr<Context> context_;
};

int64_t geometric_mean(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::sqrt(static_cast<double>(a) * static_cast<double>(b)));
}

class Calibrator {
 public:
  explicit Calibrator(const CalibrateOptions& options) : options_(options) {
    result_.target = target::host_target();
    result_.target.name = options.name;
    result_.target.records = nullptr;
    products_ = measured_products(result_.target);
    tasks_ = 4 + std::ssize(measured_operators()) + std::ssize(products_) + std::ssize(samples()) +
             std::ssize(result_.target.caches);
  }

  Result<Calibration> run() {
    const Clock::time_point begin = Clock::now();
    step("clock");
    if (const double ghz = target::measured_clock_ghz(); ghz > 0.1)
      result_.target.clock_ghz = three_digits(ghz);
    HEDDLE_RETURN_IF_ERROR(measure_calls());
    HEDDLE_RETURN_IF_ERROR(measure_bandwidth());
    HEDDLE_RETURN_IF_ERROR(measure_operators());
    HEDDLE_RETURN_IF_ERROR(measure_products());
    HEDDLE_RETURN_IF_ERROR(measure_fit());
    result_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  void step(const std::string& what) {
    if (options_.progress) options_.progress({done_++, tasks_, what});
  }

  Result<double> time(const std::string& text, int threads,
                      compiler::Fuse fuse = compiler::Fuse::stitch) const {
    HEDDLE_ASSIGN_OR_RETURN(const Sample program,
                            Sample::make(text, result_.target, threads, fuse));
    return program.best_ns();
  }

  Status measure_calls() {
    step("calls");
    HEDDLE_ASSIGN_OR_RETURN(const double few, time(row_text(16, 8), 1, compiler::Fuse::off));
    HEDDLE_ASSIGN_OR_RETURN(const double many, time(row_text(16, 72), 1, compiler::Fuse::off));
    result_.target.serial_command_ns = command_ns(few, many, 72 - 8);
    if (result_.target.cores < 2) return {};
    step("forks and joins");
    // 192 KiB in, 192 KiB out: shared between the cores, and still in near caches.
    constexpr int64_t kElems = 49152;
    HEDDLE_ASSIGN_OR_RETURN(const double alone, time(row_text(kElems, 16), 1, compiler::Fuse::off));
    HEDDLE_ASSIGN_OR_RETURN(const double shared,
                            time(row_text(kElems, 16), result_.target.cores, compiler::Fuse::off));
    result_.target.launch_ns = fork_ns(alone, shared, 16, result_.target.cores);
    return {};
  }

  Result<double> copy_rate(int64_t array_bytes, int threads) const {
    const int64_t elems = std::max<int64_t>(array_bytes / 4 / 64 * 64, 64);
    HEDDLE_ASSIGN_OR_RETURN(const double ns, time(copy_text(elems), threads));
    return copy_bytes_per_ns(elems, ns, result_.target.serial_command_ns);
  }

  Result<double> read_ns(int64_t bytes) const {
    constexpr int64_t kColumns = 1024;
    return time(sum_text(bytes / (4 * kColumns), kColumns), 1);
  }

  Status measure_bandwidth() {
    target::Target& target = result_.target;
    double before = 1e9;
    for (size_t i = 0; i < target.caches.size(); ++i) {
      step(fmt::format("cache {}", i + 1));
      // Both arrays together fill half of the first-level cache; for later levels the size is
      // between that and the previous level. find_share() finds our share of a shared cache.
      int64_t array = target.caches[i].bytes / 4;
      if (i > 0) array = std::min(array, geometric_mean(target.caches[i - 1].bytes, array));
      HEDDLE_ASSIGN_OR_RETURN(const double rate, copy_rate(array, 1));
      target.caches[i].bandwidth_bytes_per_ns = three_digits(std::min(rate, before));
      before = target.caches[i].bandwidth_bytes_per_ns;
    }
    step("memory");
    HEDDLE_RETURN_IF_ERROR(measure_memory(before));
    return find_share();
  }

  Status measure_memory(double near_rate) {
    target::Target& target = result_.target;
    HEDDLE_ASSIGN_OR_RETURN(const double one, copy_rate(kFarBytes, 1));
    target.memory_bandwidth_bytes_per_ns = three_digits(std::min(one, near_rate));
    HEDDLE_ASSIGN_OR_RETURN(const double all, copy_rate(kFarBytes, target.cores));
    target.memory_bandwidth_all_bytes_per_ns =
        three_digits(std::max(all, target.memory_bandwidth_bytes_per_ns));
    HEDDLE_ASSIGN_OR_RETURN(const double ns, read_ns(kFarBytes));
    target.memory_read_bytes_per_ns =
        three_digits(std::min(kFarBytes / ns, target.memory_bandwidth_bytes_per_ns));
    return {};
  }

  // How much of a cache that other machines also use is available to us.
  Status find_share() {
    target::Target& target = result_.target;
    if (target.caches.size() < 2) return {};
    step("share of the last cache");
    const int64_t least = 2 * target.caches[target.caches.size() - 2].bytes;
    const int64_t most = std::min(target.caches.back().bytes, kFarBytes);
    std::vector<TransferTime> times;
    for (int64_t array = most / 2; array >= least && times.size() < 8; array /= 2) {
      HEDDLE_ASSIGN_OR_RETURN(const double rate, copy_rate(array, 1));
      times.push_back({array, true, 2 * static_cast<double>(array) / rate});
      HEDDLE_ASSIGN_OR_RETURN(const double ns, read_ns(array));
      times.push_back({array, false, ns});
    }
    fit_last_cache(&target, times, least);
    return {};
  }

  Status measure_operators() {
    const double vectors = 2048.0 / result_.target.lanes(tensor::Type::f32);
    // The cost of the surroundings: a multiplication and two additions.
    HEDDLE_ASSIGN_OR_RETURN(const double bare, cycles_of("negate", vectors));
    for (const hlo::Opcode opcode : measured_operators()) {
      const std::string text(hlo::opcode_text(opcode));
      step(text);
      HEDDLE_ASSIGN_OR_RETURN(const double cycles, cycles_of(text, vectors));
      set_cycles(&result_.target, std::string(hlo::opcode_info(opcode).kernel_op), cycles, bare);
    }
    return {};
  }

  Result<double> cycles_of(const std::string& op, double vectors) const {
    HEDDLE_ASSIGN_OR_RETURN(const double few, time(operator_text(op, 1), 1));
    HEDDLE_ASSIGN_OR_RETURN(const double many, time(operator_text(op, 4), 1));
    return (many - few) / 3 / vectors * result_.target.clock_ghz;
  }

  // Products whose operands stay in the second-level cache, on one core.
  Status measure_products() {
    constexpr int64_t kRows = 192, kColumns = 64, kBytesOfRow = 4096;
    target::Target one = result_.target;
    one.cores = 1;
    std::map<std::string, double> rates;
    for (const MeasuredProduct& product : products_) {
      step("products by " + product.name);
      const target::Target target = product.tiles ? one : schedule::without_tiles(one);
      const int64_t k = kBytesOfRow / tensor::type_bytes(product.a);
      HEDDLE_ASSIGN_OR_RETURN(
          const Sample program,
          Sample::make(product_text(product.a, product.b, product.sums, kRows, kColumns, k), target,
                       1));
      HEDDLE_ASSIGN_OR_RETURN(const double ns, program.best_ns());
      rates[product.name] = 2.0 * static_cast<double>(kRows * kColumns * k) / ns;
    }
    set_rates(&result_.target, rates);
    return {};
  }

  // On one core, where the thread's clock can be used.
  Status measure_fit() {
    target::Target one = result_.target;
    one.cores = 1;
    one.memory_bandwidth_all_bytes_per_ns = one.memory_bandwidth_bytes_per_ns;
    for (const SampleText& sample : samples()) {
      step(sample.name);
      HEDDLE_ASSIGN_OR_RETURN(const Sample program, Sample::make(sample.text, one, 1));
      HEDDLE_ASSIGN_OR_RETURN(const double measured, program.best_ns());
      result_.fits.push_back({sample.name, program.predicted_ns(), measured});
    }
    const FitErrors errors = errors_of(result_.fits);
    result_.geomean_error = errors.geomean;
    result_.worst_error = errors.worst;
    return {};
  }

  const CalibrateOptions& options_;
  Calibration result_;
  std::vector<MeasuredProduct> products_;
  int64_t done_ = 0, tasks_ = 0;
};

}  // namespace

Result<Calibration> calibrate(const CalibrateOptions& options) { return Calibrator(options).run(); }

}  // namespace heddle::api
