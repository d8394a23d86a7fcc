// A program whose code comes from the standard library's headers: templates, exceptions and long inline chains.
#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

template <class T> static std::string sorted(std::vector<T> v) {
  std::sort(v.begin(), v.end());
  std::stable_sort(v.begin(), v.end(), std::greater<T>());
  std::map<T, std::deque<T>> by;
  for (const T &x : v) by[x].push_front(x);
  std::ostringstream out;
  for (const auto &[k, d] : by) out << k << ':' << d.size() << ' ';
  return out.str();
}

template <class R> static double dice(R engine) {
  std::normal_distribution<double> normal(0, 1);
  std::gamma_distribution<double> gamma(2, 1);
  std::discrete_distribution<int> discrete{1, 2, 3};
  return normal(engine) + gamma(engine) + discrete(engine);
}

int main(int argc, char **argv) {
  std::vector<std::string> words(argv, argv + argc);
  std::unordered_map<std::string, std::set<int>> index;
  std::regex pattern("([a-z]+)[0-9]*|\\w{2,5}"), wide("(\\d+)-(x|y)*?", std::regex::extended);
  for (const std::string &w : words) {
    std::smatch match;
    if (std::regex_search(w, match, pattern) || std::regex_match(w, wide)) index[match.str()].insert((int)match.size());
  }
  std::cout << sorted(words) << sorted(std::vector<double>{1.5, argc * 2.0}) << sorted(std::vector<int>{argc, 2}) << index.size()
            << dice(std::mt19937(argc)) << dice(std::ranlux48(argc)) << dice(std::minstd_rand(argc)) << std::regex_replace(words[0], pattern, "$1") << '\n';
}
