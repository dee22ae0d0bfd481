#include "calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace heddle::tools {

using tensor::Literal;
using tensor::NamedLiterals;
using tensor::Shape;
namespace fs = std::filesystem;

namespace {

// Samples in an array for an input of such extents: 0 where it does not fit.
int64_t samples_in(const Literal& value, const std::vector<int64_t>& wanted) {
  const std::vector<int64_t> extents = value.shape().extents();
  if (extents == wanted) return 1;
  if (extents.empty() || extents.size() != wanted.size() || wanted[0] < 1 ||
      !std::equal(extents.begin() + 1, extents.end(), wanted.begin() + 1) ||
      extents[0] % wanted[0] != 0)
    return 0;
  return extents[0] / wanted[0];
}

std::string identity_of(const std::string& path) {
  std::error_code code;
  const auto size = fs::file_size(path, code);
  const auto written = fs::last_write_time(path, code);
  return fmt::format("{} {} {}\n", path, size, written.time_since_epoch().count());
}

}  // namespace

Result<Samples> Samples::open(
    const std::string& path, int64_t random,
    const std::vector<std::pair<std::string, std::vector<int64_t>>>& inputs) {
  Samples samples;
  samples.inputs_ = inputs;
  samples.count_ = random;
  if (path.empty()) return samples;
  std::error_code code;
  if (fs::is_directory(path, code)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, code))
      if (entry.path().extension() == ".npz") samples.files_.push_back(entry.path().string());
    std::sort(samples.files_.begin(), samples.files_.end());
    if (samples.files_.empty()) return user_error("--calib {}: holds no .npz file", path);
    samples.count_ = static_cast<int64_t>(samples.files_.size());
    for (const std::string& file : samples.files_) samples.identity_ += identity_of(file);
    return samples;
  }
  Result<NamedLiterals> read = tensor::read_npz(path);
  if (!read) return error_in("--calib", read.error());
  samples.whole_ = std::move(*read);
  samples.identity_ = identity_of(path);
  samples.count_ = 1;
  for (const auto& [name, value] : samples.whole_) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (input == inputs.end())
      return user_error("--calib {}, entry {}: the model has no such input", path, name);
    const int64_t here = samples_in(value, input->second);
    if (here == 0)
      return user_error(
          "--calib {}, entry {}: {}, wanted [{}] or that many times more along the "
          "first dimension",
          path, name, to_string(value.shape()), fmt::join(input->second, ","));
    if (here > 1 && samples.count_ > 1 && here != samples.count_)
      return user_error("--calib {}, entry {}: {} samples, where others have {}", path, name, here,
                        samples.count_);
    samples.count_ = std::max(samples.count_, here);
  }
  if (samples.whole_.empty()) return user_error("--calib {}: holds no arrays", path);
  return samples;
}

Result<NamedLiterals> Samples::read(int64_t number) const {
  if (!files_.empty()) {
    Result<NamedLiterals> read = tensor::read_npz(files_[static_cast<size_t>(number)]);
    if (!read) return error_in("--calib", read.error());
    return read;
  }
  NamedLiterals sample;
  for (const auto& [name, value] : whole_) {
    const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (samples_in(value, input->second) == 1) {
      sample.emplace_back(name, value);
      continue;
    }
    Literal one(Shape::array(value.type(), input->second));
    std::memcpy(one.mutable_data(), static_cast<const char*>(value.data()) + number * one.bytes(),
                static_cast<size_t>(one.bytes()));
    sample.emplace_back(name, std::move(one));
  }
  return sample;
}

}  // namespace heddle::tools
