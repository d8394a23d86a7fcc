// Code with inlined calls, several ranges of one function, exceptions, templates,
// aliases and static names, for comparison with other symbolizers.
#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "shapes.h"

namespace shapes {

struct Item {
	int weight;
	std::string name;
};

template <class T> T total(const std::vector<T> &values) {
	T sum = 0;
	for (auto &v : values)
		sum += twice(v);
	return sum;
}

static int __attribute__((noinline)) fail(int x) {
	if (x > 5)
		throw std::runtime_error("more than five");
	return x * 3;
}

struct Base {
	virtual ~Base() {}
	virtual int run(std::map<std::string, Item> &items, std::vector<int> &values) = 0;
};

struct Worker : Base {
	int run(std::map<std::string, Item> &items, std::vector<int> &values) override {
		std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
		int result = 0;
		for (auto &[key, item] : items) {
			result += item.weight + (int)item.name.size();
			try {
				result += fail(result & 7);
			} catch (std::exception &e) {
				result -= (int)std::string(e.what()).size();
			}
		}
		return result + total(values);
	}
};

} // namespace shapes

extern "C" int first_name(int x) { return thrice(x) + x; }
extern "C" int second_name(int x) __attribute__((alias("first_name")));

int main(int argc, char **) {
	std::map<std::string, shapes::Item> items;
	std::vector<int> values;
	for (int i = 0; i < argc * 10; i++) {
		items[std::to_string(i)] = {i, std::string(i, 'x')};
		values.push_back(i * 7 % 13);
	}
	shapes::Worker worker;
	shapes::Base *base = &worker;
	return (base->run(items, values) + second_name(argc)) & 1;
}
