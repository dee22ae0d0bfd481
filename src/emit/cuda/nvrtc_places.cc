#include "emit/cuda/nvrtc_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace heddle::emit::cuda {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "libnvrtc.so.13" before "libnvrtc.so.12"; "cuda-13.0" before "cuda-12.9" before "cuda".
bool is_newer(const std::string& a, const std::string& b) {
  const auto numbers = [](const std::string& text) {
    std::vector<long> result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') continue;
      char* end = nullptr;
      result.push_back(std::strtol(text.c_str() + i, &end, 10));
      i = static_cast<size_t>(end - text.c_str());
    }
    return result;
  };
  const auto first = numbers(a), second = numbers(b);
  return first != second ? first > second : a < b;
}

// Names in a folder with this prefix, the newest first.
std::vector<std::string> names_in(const fs::path& folder, const std::string& begin) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(begin)) found.push_back(name);
  }
  std::sort(found.begin(), found.end(), is_newer);
  return found;
}

class Search {
 public:
  // True: it has NVRTC.
  bool folder(const fs::path& folder) {
    const std::vector<std::string> names = names_in(folder, "libnvrtc.so");
    if (!names.empty()) add((folder / names[0]).string());
    return !names.empty();
  }

  // nvidia/cuda_nvrtc/lib of CUDA 12's packages, nvidia/cu13/lib of CUDA 13's.
  bool site_packages(const fs::path& packages) {
    bool found = false;
    for (const std::string& name : names_in(packages / "nvidia", "cu"))
      if (name == "cuda_nvrtc" || !name.starts_with("cuda"))
        found = folder(packages / "nvidia" / name / "lib") || found;
    return found;
  }

  // Searches lib/python3.N/site-packages of a prefix; Debian calls its own dist-packages.
  void prefix(const std::string& what, const fs::path& prefix) {
    bool found = false;
    for (const char* lib : {"lib", "lib64", "local/lib"})
      for (const std::string& python : names_in(prefix / lib, "python3"))
        for (const char* packages : {"site-packages", "dist-packages"})
          found = site_packages(prefix / lib / python / packages) || found;
    if (!found)
      missed(
          fmt::format("{}: no nvidia/cu*/lib with NVRTC in {}/lib/python3*/"
                      "site-packages",
                      what, prefix.string()));
  }

  void python_on_path(const std::string& path, const std::string& home) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      std::error_code error;
      const fs::path python = fs::path(folder) / "python3";
      if (folder.empty() || !fs::exists(python, error)) continue;
      const fs::path own = fs::path(folder).parent_path();
      prefix(python.string(), own);
      // python3 may be a link into the environment that it belongs to.
      const fs::path real = fs::canonical(python, error).parent_path().parent_path();
      if (!error && real != own) prefix(python.string(), real);
      if (!home.empty()) prefix("packages of the user", fs::path(home) / ".local");
      return;
    }
    missed("PATH: no python3");
  }

  void toolkits(const fs::path& root) {
    bool found = false;
    const fs::path local = root / "usr/local";
    for (const std::string& name : names_in(local, "cuda"))
      for (const char* lib : {"lib64", "targets/x86_64-linux/lib", "lib"})
        if (folder(local / name / lib)) {
          found = true;
          break;
        }
    if (!found) missed((local / "cuda*/lib64").string() + ": none there");
  }

  void add(const std::string& file) {
    if (std::find(places.files.begin(), places.files.end(), file) != places.files.end()) return;
    places.files.push_back(file);
    missed(file);
  }
  void missed(const std::string& place) {
    places.tried += (places.tried.empty() ? "" : "; ") + place;
  }

  NvrtcPlaces places;
};

}  // namespace

Surroundings surroundings() {
  Surroundings result;
  result.named = variable("HEDDLE_NVRTC");
  result.virtual_env = variable("VIRTUAL_ENV");
  result.path = variable("PATH");
  result.home = variable("HOME");
  return result;
}

NvrtcPlaces nvrtc_places(const Surroundings& where, const std::string& environment) {
  Search search;
  if (!where.named.empty()) {
    std::error_code error;
    if (!fs::is_directory(where.named, error))
      search.add(where.named);
    else if (!search.folder(where.named))
      search.missed(where.named + ": no libnvrtc.so* there");
    search.places.tried = "HEDDLE_NVRTC alone: " + search.places.tried;
    return search.places;
  }
  search.missed("HEDDLE_NVRTC: not set");
  if (!environment.empty()) search.prefix("the tests' Python", environment);
  if (where.virtual_env.empty())
    search.missed("VIRTUAL_ENV: not set");
  else
    search.prefix("VIRTUAL_ENV", where.virtual_env);
  search.python_on_path(where.path, where.home);
  search.toolkits(where.root);
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) search.add(name);
  search.places.tried += " by the loader";
  return search.places;
}

}  // namespace heddle::emit::cuda
