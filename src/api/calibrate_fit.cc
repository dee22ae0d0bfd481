#include "api/calibrate_fit.h"

#include <algorithm>
#include <cmath>

namespace heddle::api {

double three_digits(double value) {
  if (value <= 0) return 0;
  const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

double command_ns(double few_ns, double many_ns, int64_t more) {
  return three_digits(std::max(1.0, (many_ns - few_ns) / static_cast<double>(more)));
}

double fork_ns(double alone_ns, double shared_ns, int64_t kernels, int cores) {
  const auto count = static_cast<double>(kernels);
  return three_digits(std::clamp((shared_ns - alone_ns / cores) / count, 50.0, 50000.0));
}

double copy_bytes_per_ns(int64_t elems, double ns, double command_ns) {
  return 8.0 * static_cast<double>(elems) / std::max(1.0, ns - command_ns);
}

void set_cycles(target::Target* target, const std::string& key, double measured, double bare) {
  const double own = std::max(0.5, measured - bare + target->cycles["add"]);
  double& cycles = target->cycles[key];
  if (const auto fast = target->cycles.find(key + "_fast");
      fast != target->cycles.end() && cycles > 0)
    fast->second = three_digits(fast->second * own / cycles);
  cycles = three_digits(own);
}

FitErrors errors_of(std::span<const CalibrateFit> fits) {
  FitErrors errors;
  double sum = 0;
  for (const CalibrateFit& fit : fits) {
    const double error = std::abs(std::log(fit.predicted_ns / fit.measured_ns));
    sum += error;
    errors.worst = std::max(errors.worst, std::exp(error) - 1);
  }
  if (!fits.empty()) errors.geomean = std::exp(sum / static_cast<double>(fits.size())) - 1;
  return errors;
}

}  // namespace heddle::api
