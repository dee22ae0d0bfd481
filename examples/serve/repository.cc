#include <sys/stat.h>

#include <algorithm>

#include "serve.h"

namespace serve {

namespace fs = std::filesystem;

static bool is_model(const fs::path& file) {
  return file.extension() == ".onnx" || file.extension() == ".heddle";
}

// What changes when a file of the model does.
static std::string state_of(const fs::path& from) {
  std::set<fs::path> files{from, fs::path(from).replace_extension(".json")};
  if (fs::is_directory(from))
    for (const auto& one : fs::recursive_directory_iterator(from)) files.insert(one.path());
  std::string result;
  for (const fs::path& file : files) {
    struct stat is{};
    if (stat(file.c_str(), &is) == 0 && S_ISREG(is.st_mode))
      result += fmt::format("{} {} {} {}.{}\n", file.string(), is.st_ino, is.st_size,
                            is.st_mtim.tv_sec, is.st_mtim.tv_nsec);
  }
  return result;
}

Repository::Repository(fs::path folder, Config config, const Limits& limits, Metrics& metrics,
                       std::atomic<bool>& stop)
    : folder_(std::move(folder)),
      config_(std::move(config)),
      limits_(limits),
      metrics_(metrics),
      stop_(stop) {
  std::string name = fs::temp_directory_path() / "heddle-serve-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw Refusal(500, "cannot make a folder {}", name);
  copies_ = name;
}

Repository::~Repository() {
  std::error_code ignored;
  fs::remove_all(copies_, ignored);
}

void Repository::look() {
  std::map<std::string, fs::path> found;
  std::error_code gone;  // it is being replaced
  for (auto one = fs::directory_iterator(folder_, gone); one != fs::directory_iterator();
       one.increment(gone))
    if (const fs::path& path = one->path();
        path.filename().string()[0] != '.' && (is_model(path) || fs::is_directory(path)))
      found[path.stem()] = path;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const auto& entry) { return !found.contains(entry.first); });
    for (const auto& [name, path] : found) entries_[name];
  }
  for (const auto& [name, path] : found) {
    Entry& entry = entries_[name];  // there are no others that add or remove some
    std::shared_ptr<Model> model;
    std::string state, error;
    try {
      state = state_of(path);
      if (state == entry.loaded || (ready_ && state != std::exchange(entry.seen, state))) continue;
      model = load(name, path);
      if (state_of(path) != state) continue;
    } catch (const std::exception& e) {
      error = e.what();
    }
    if (stop_) return;
    fmt::print(stderr, "{}: {}\n", name, error.empty() ? "ready" : "error: " + error);
    metrics_.add("heddle_loads_total", error.empty() ? "result=\"ready\"" : "result=\"failed\"");
    const std::lock_guard lock(mutex_);
    if (model != nullptr) entry.model = model;
    entry.loaded = state, entry.error = error;
  }
  ready_ = true;
}

std::shared_ptr<Model> Repository::load(const std::string& name, const fs::path& from) {
  // Removed when nothing uses the model any more.
  const std::shared_ptr<fs::path> copy(new fs::path(copies_ / std::to_string(++loads_)),
                                       [](fs::path* old) {
                                         std::error_code ignored;
                                         fs::remove_all(*old, ignored);
                                         delete old;
                                       });
  fs::create_directory(*copy);
  const bool is_folder = fs::is_directory(from);
  if (is_folder)
    fs::copy(from, *copy, fs::copy_options::recursive);
  else
    fs::copy_file(from, *copy / from.filename());
  fs::path file;
  for (const auto& one : fs::directory_iterator(*copy)) {
    if (!is_model(one.path())) continue;
    if (!file.empty()) throw Refusal(400, "there is more than one .onnx or .heddle file");
    file = one.path();
  }
  if (file.empty()) throw Refusal(400, "there is no .onnx or .heddle file");
  Config config = config_;
  config.read(is_folder ? *copy / "config.json" : fs::path(from).replace_extension(".json"));
  auto* model = new Model(name, file, config, limits_, stop_);
  return {model, [copy](Model* old) { delete old; }};
}

std::shared_ptr<Model> Repository::get(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw Refusal(404, "there is no model '{}'", name.substr(0, 80));
  const auto& [seen, loaded, model, error] = found->second;
  if (model == nullptr)
    throw Refusal(503, "model '{}' {}", name,
                  error.empty() ? "is being loaded" : "could not be loaded: " + error);
  return model;
}

json Repository::index() const {
  const std::lock_guard lock(mutex_);
  json result = json::array();
  for (const auto& [name, entry] : entries_)
    result.push_back({{"name", name},
                      {"version", "1"},
                      {"state", entry.model ? "READY" : "UNAVAILABLE"},
                      {"reason", entry.error}});
  return result;
}

}  // namespace serve
