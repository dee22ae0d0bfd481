#include "api/calibrate_fit.h"

#include <algorithm>
#include <cmath>

#include "cost/rates.h"
#include "kernel/mma.h"

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

namespace {

// Total deviation of the target's predictions from these times.
double error_of(const target::Target& target, std::span<const TransferTime> times) {
  using cost::Transition;
  double error = 0;
  for (const TransferTime& one : times) {
    const auto bytes = static_cast<double>(one.bytes);
    double ns = cost::transfer_ns(Transition::read, bytes, 1, target);
    if (one.is_copy)
      ns = std::max(ns, 2 * cost::transfer_ns(Transition::memory_reg, bytes, 1, target));
    error += std::abs(std::log(ns / one.ns));
  }
  return error;
}

}  // namespace

void fit_last_cache(target::Target* target, std::span<const TransferTime> times, int64_t least) {
  if (times.empty() || target->caches.empty()) return;
  const int64_t whole = target->caches.back().bytes;
  double best = error_of(*target, times);
  int64_t found = whole;
  for (double size = static_cast<double>(whole); size >= 4 * static_cast<double>(least);
       size /= std::pow(2, 0.25)) {
    target->caches.back().bytes = static_cast<int64_t>(size);
    const double error = error_of(*target, times);
    if (error < best) {
      best = error;
      found = target->caches.back().bytes;
    }
  }
  target->caches.back().bytes = found;
}

void set_cycles(target::Target* target, const std::string& key, double measured, double bare) {
  const double own = std::max(0.5, measured - bare + target->cycles["add"]);
  double& cycles = target->cycles[key];
  if (const auto fast = target->cycles.find(key + "_fast");
      fast != target->cycles.end() && cycles > 0)
    fast->second = three_digits(fast->second * own / cycles);
  cycles = three_digits(own);
}

std::vector<MeasuredProduct> measured_products(const target::Target& target) {
  using tensor::Type;
  std::vector<MeasuredProduct> found = {{"f32", Type::f32, Type::f32, Type::f32},
                                        {"f64", Type::f64, Type::f64, Type::f64}};
  for (const kernel::MmaDescriptor& mma : kernel::mma_table()) {
    if (!target.has_any(mma.features) || (!mma.is_dot() && !mma.is_tile())) continue;
    const std::string name(mma.is_tile() ? mma.name : tensor::type_name(mma.b));
    // Of several instructions for the same types, the first one is used.
    const bool known = std::ranges::any_of(
        found, [&](const MeasuredProduct& product) { return product.name == name; });
    if (!known) found.push_back({name, mma.a, mma.b, mma.d, mma.is_tile()});
  }
  return found;
}

void set_rates(target::Target* target, const std::map<std::string, double>& flops_per_ns) {
  const double f32 = flops_per_ns.at("f32");
  const double each = 2.0 * target->clock_ghz * target->lanes(tensor::Type::f32);
  constexpr double kMostPerCycle = 4;
  target->fma_per_cycle = static_cast<int>(std::clamp(std::round(f32 / each), 1.0, kMostPerCycle));
  for (const auto& [name, rate] : flops_per_ns)
    if (name != "f32") target->mac_rate[name] = three_digits(rate / f32);
  if (const auto bytes = target->mac_rate.find("s8"); flops_per_ns.contains("s8"))
    target->mac_rate["u8"] = bytes->second;
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
