// heddle calibrate: measures this machine and writes a target file.
#include "api/calibrate.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command_line.h"
#include "commands.h"
#include "output_file.h"
#include "report.h"
#include "terminal.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

class Calibrate : public Command {
 public:
  std::string_view name() const override { return "calibrate"; }
  std::string_view summary() const override {
    return "measures this machine and writes a target file";
  }

  void declare(CommandLine& line) override {
    line.output(output_, "-o,--output", "F.json", "the target file (default: standard output)");
    line.text(target_name_, "--name", "NAME", "name of the target (default: calibrated)");
    json_.declare(line);
    line.examples(
        "  heddle calibrate -o here.json && heddle bench model.onnx --target here.json\n"
        "  heddle calibrate --json -\n");
  }

  Result<int> run() override {
    api::CalibrateOptions options;
    if (!target_name_.empty()) options.name = target_name_;
    options.progress = [&](const api::CalibrateProgress& progress) { show(progress); };
    Result<api::Calibration> calibrated = api::calibrate(options);
    progress_.hide();
    if (!calibrated) return tl::unexpected(calibrated.error());
    const std::string text = target::to_string(calibrated->target) + "\n";
    if (output_.given()) {
      HEDDLE_RETURN_IF_ERROR(output_.write(text));
      if (!json_.only_json()) print(*calibrated, stdout);
    } else if (!json_.only_json()) {
      fmt::print("{}", text);
      if (verbosity() != Verbosity::quiet) print(*calibrated, stderr);
    }
    HEDDLE_RETURN_IF_ERROR(json_.write(json(*calibrated)));
    return 0;
  }

 private:
  void show(const api::CalibrateProgress& progress) {
    progress_.show(
        fmt::format("{}  {}", Progress::bar(progress.done, progress.tasks), progress.what));
  }

  static void print(const api::Calibration& calibrated, std::FILE* to) {
    const target::Target& target = calibrated.target;
    fmt::print(to, "{}: {:.2f} GHz, {} cores, {:.3g} ns a call, {:.3g} ns a fork and join\n",
               target.name, target.clock_ghz, target.cores, target.serial_command_ns,
               target.launch_ns);
    for (size_t i = 0; i < target.caches.size(); ++i)
      fmt::print(to, "L{}: {:.3g} GB/s a core\n", i + 1, target.caches[i].bandwidth_bytes_per_ns);
    fmt::print(to, "memory: {:.3g} GB/s one core, {:.3g} all, {:.3g} one that only reads\n",
               target.memory_bandwidth_bytes_per_ns, target.memory_bandwidth_all_bytes_per_ns,
               target.memory_read_bytes_per_ns);
    const double f32 = target.peak_flops_per_ns(tensor::Type::f32) / target.cores;
    fmt::print(to, "products: {:.0f} GFLOP/s a core in f32", f32);
    for (const auto& [type, rate] : target.mac_rate)
      if (rate > 1) fmt::print(to, ", {:.3g} times that in {}", rate, type);
    fmt::print(to, "\n{:<36} {:>12} {:>12} {:>6}\n", "kernel", "predicted", "measured", "ratio");
    for (const api::CalibrateFit& fit : calibrated.fits)
      fmt::print(to, "{:<36} {:>12} {:>12} {:>6.2f}\n", fit.name, ms_text(fit.predicted_ns / 1e6),
                 ms_text(fit.measured_ns / 1e6), fit.predicted_ns / fit.measured_ns);
    fmt::print(to,
               "error of the predictions: {:.0f}% (geometric mean), {:.0f}% at worst; {:.1f} s\n",
               100 * calibrated.geomean_error, 100 * calibrated.worst_error, calibrated.seconds);
  }

  ordered_json json(const api::Calibration& calibrated) const {
    ordered_json json;
    json["schema"] = 1;
    json["output"] = output_.path;
    json["target"] = ordered_json::parse(target::to_string(calibrated.target));
    json["fits"] = ordered_json::array();
    for (const api::CalibrateFit& fit : calibrated.fits)
      json["fits"].push_back({{"name", fit.name},
                              {"predicted_ns", fit.predicted_ns},
                              {"measured_ns", fit.measured_ns}});
    json["geomean_error"] = calibrated.geomean_error;
    json["worst_error"] = calibrated.worst_error;
    json["seconds"] = calibrated.seconds;
    return json;
  }

  std::string target_name_;
  OutputFile output_;
  JsonChoice json_;
  Progress progress_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate() { return std::make_unique<Calibrate>(); }

}  // namespace heddle::tools
