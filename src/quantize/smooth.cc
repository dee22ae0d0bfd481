#include "quantize/smooth.h"

#include <algorithm>
#include <cmath>

#include "quantize/fold.h"

namespace heddle::quantize {

using import::OnnxEdit;
using tensor::Literal;

namespace {

constexpr double kLeastGain = 0.5;  // of the error before; less is within the prediction's error

using Factors = std::vector<double>;

double square(double x) { return x * x; }
double rounding_of(double most) { return square(most / 127) / 12; }

// Products that read the same value.
class Group {
 public:
  Group(const OnnxEdit& model, const std::vector<Layer>& layers, const Channels& channels)
      : model_(model), layers_(layers), channels_(channels) {}

  Status add(const Plan& plan, size_t layer) {
    const Layer& one = layers_[layer];
    HEDDLE_ASSIGN_OR_RETURN(Literal weights, value_now(model_, plan, one.weights));
    fits_ = fits_ && weights.shape().dim(1 - one.axis) == width();
    members_.push_back({layer, std::move(weights)});
    return {};
  }

  int64_t width() const { return static_cast<int64_t>(channels_.most.size()); }
  bool is_quantized(const Plan& plan) const {
    return fits_ && std::any_of(members_.begin(), members_.end(),
                                [&](const Member& one) { return plan.chosen[one.layer]; });
  }

  Factors factors(double exponent) const {
    Factors most(channels_.most.size(), 0), s(most.size(), 1);
    for (const Member& one : members_)
      each(one, [&](int64_t, size_t j, double w) { most[j] = std::max(most[j], std::abs(w)); });
    double logs = 0, count = 0;
    for (size_t j = 0; j < s.size(); ++j) {
      const double here = std::pow(channels_.most[j], exponent) / std::pow(most[j], 1 - exponent);
      if (!(here > 0) || !std::isfinite(here)) continue;
      s[j] = here;
      logs += std::log(here);
      ++count;
    }
    // A common factor changes nothing: the geometric mean becomes 1.
    const double mean = count > 0 ? std::exp(logs / count) : 1;
    for (double& x : s)
      if (x != 1) x = std::clamp(x / mean, 1e-4, 1e4);
    return s;
  }

  // Error of all results together: the activation's rounding times the weights, and the weights'
  // rounding times the activation.
  double error(const Plan& plan, const Factors& s, double rounding) const {
    double power = 0, sum = 0;
    for (size_t j = 0; j < s.size(); ++j) power += channels_.power[j] / square(s[j]);
    for (const Member& one : members_) {
      if (!plan.chosen[one.layer]) continue;
      std::vector<double> most(static_cast<size_t>(one.outputs(layers_)), 0);
      each(one, [&](int64_t o, size_t j, double w) {
        double& here = most[static_cast<size_t>(o)];
        here = std::max(here, std::abs(w * s[j]));
        sum += square(w * s[j]) * rounding;
      });
      for (double here : most) sum += rounding_of(here) * power;
    }
    return sum;
  }
  double error_now(const Plan& plan) const {
    const Factors ones(channels_.most.size(), 1);
    return error(plan, ones, std::min(channels_.rounding, rounding_of(most_of(ones))));
  }
  double error_with(const Plan& plan, const Factors& s) const {
    return error(plan, s, rounding_of(most_of(s)));
  }

  // Multiplies the weights by the factors.
  void apply(Plan* plan, const Factors& s) {
    for (Member& one : members_) {
      const auto values = one.weights.mutable_values<float>();
      const int64_t columns = one.weights.shape().dim(1);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] *= static_cast<float>(s[channel(one, static_cast<int64_t>(i), columns)]);
      plan->values.insert_or_assign(layers_[one.layer].weights, one.weights);
    }
  }

 private:
  struct Member {
    size_t layer;
    Literal weights;
    int64_t outputs(const std::vector<Layer>& layers) const {
      return weights.shape().dim(layers[layer].axis);
    }
  };

  size_t channel(const Member& one, int64_t place, int64_t columns) const {
    return static_cast<size_t>(layers_[one.layer].axis == 1 ? place / columns : place % columns);
  }
  // Calls f(output, channel, weight).
  template <typename Function>
  void each(const Member& one, Function&& f) const {
    const auto values = one.weights.values<float>();
    const int64_t columns = one.weights.shape().dim(1);
    const bool by_row = layers_[one.layer].axis == 1;
    for (int64_t i = 0; i < one.weights.elems(); ++i) {
      const int64_t row = i / columns, column = i % columns;
      f(by_row ? column : row, static_cast<size_t>(by_row ? row : column),
        static_cast<double>(values[static_cast<size_t>(i)]));
    }
  }
  double most_of(const Factors& s) const {
    double most = 0;
    for (size_t j = 0; j < s.size(); ++j) most = std::max(most, channels_.most[j] / s[j]);
    return most;
  }

  const OnnxEdit& model_;
  const std::vector<Layer>& layers_;
  const Channels& channels_;
  std::vector<Member> members_;
  bool fits_ = true;  // the value's channels match those of the weights
};

// Whether these products are the only readers of the value, and each has its own weights.
bool is_only_read_by(const OnnxEdit& model, const Readers& readers,
                     const std::vector<Layer>& layers, const std::vector<size_t>& group) {
  const std::string& value = layers[group[0]].input;
  const std::vector<std::string> outputs = model.outputs();
  return readers.at(value).size() == group.size() && !model.is_pinned(value) &&
         std::find(outputs.begin(), outputs.end(), value) == outputs.end() &&
         std::all_of(group.begin(), group.end(),
                     [&](size_t i) { return is_own(model, readers, layers[i].weights); });
}

Status divide(const OnnxEdit& model, const std::vector<FoldPlace>& places, const Factors& s,
              Plan* plan) {
  for (const FoldPlace& place : places) {
    HEDDLE_ASSIGN_OR_RETURN(Literal value, value_now(model, *plan, place.initializer));
    const std::vector<int64_t> extents = value.shape().extents();
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(place.axis) + 1; d < extents.size(); ++d)
      inner *= extents[d];
    const auto values = value.mutable_values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double factor = s[i / static_cast<size_t>(inner) % s.size()];
      values[i] = static_cast<float>(place.multiply ? values[i] * factor : values[i] / factor);
    }
    plan->values.insert_or_assign(place.initializer, std::move(value));
  }
  return {};
}

}  // namespace

Result<std::vector<Smoothing>> smooth(const OnnxEdit& model, const std::vector<Layer>& layers,
                                      const std::map<std::string, Channels>& channels,
                                      std::optional<double> exponent, Plan* plan) {
  const Readers readers = readers_of(model);
  std::vector<Smoothing> all(layers.size());
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].kind == Kind::product) groups[layers[i].input].push_back(i);
  const std::vector<double> exponents =
      exponent ? std::vector<double>{*exponent} : std::vector<double>{0.25, 0.5, 0.75};
  for (const auto& [value, members] : groups) {
    const auto known = channels.find(value);
    if (known == channels.end()) continue;
    Group group(model, layers, known->second);
    for (size_t i : members) HEDDLE_RETURN_IF_ERROR(group.add(*plan, i));
    if (!group.is_quantized(*plan)) continue;
    const double before = group.error_now(*plan);
    Smoothing best;
    double least = before * kLeastGain;
    for (double a : exponents)
      if (const double error = group.error_with(*plan, group.factors(a)); error < least) {
        least = error;
        best = {a, decibels(before, error), false};
      }
    if (best.exponent == 0) continue;
    const auto places = is_only_read_by(model, readers, layers, members)
                            ? places_to_divide(model, readers, value, group.width())
                            : std::nullopt;
    if (places) {
      const Factors s = group.factors(best.exponent);
      group.apply(plan, s);
      HEDDLE_RETURN_IF_ERROR(divide(model, *places, s, plan));
    } else {
      best = {0, 0, true};
    }
    for (size_t i : members) all[i] = best;
  }
  return all;
}

}  // namespace heddle::quantize
