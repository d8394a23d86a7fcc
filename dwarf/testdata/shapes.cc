// What C++ adds: namespaces, templates, members defined in and out of their class,
// constructors with several names, lambdas, local classes, and inlining across them.
extern "C" int puts(const char *);
extern "C" void sink(int);

namespace outer { namespace {

template <class T> struct Box {
	T value;
	explicit Box(T v) : value(v) { sink((int)v); }
	__attribute__((noinline)) ~Box();
	T get() const { return value; }
	template <class U> __attribute__((always_inline)) U as() const { return (U)get() + step(); }
	static int step() { sink(3); return 2; }
};

template <class T> Box<T>::~Box() { sink((int)value + 1); }

} // namespace

struct Base {
	virtual ~Base();
	virtual int area(int) const = 0;
};

Base::~Base() { sink(9); }

struct Square : Base {
	int side;
	Square(int s);
	int area(int scale) const override;
};

Square::Square(int s) : side(s) { sink(s); }

int Square::area(int scale) const {
	struct Local {
		int n;
		__attribute__((noinline)) int twice() const { sink(n); return n * 2; }
	};
	auto grow = [&](int by) __attribute__((noinline)) { sink(by); return side * by; };
	return Local{scale}.twice() + grow(scale);
}

static inline __attribute__((always_inline)) int third(int n) { sink(n * 3); return n + 3; }
static inline __attribute__((always_inline)) int second(int n) { int k = third(n); if (k > 4) { sink(k); } return k + third(k); }
static inline __attribute__((always_inline)) int first(int n) { sink(n); return second(n) - second(n + 1); }

int chain(int n) {
	int sum = 0;
	for (int k = 0; k < n; k++) {
		int inside = first(k);
		sum += inside;
	}
	return sum;
}

__attribute__((noinline, cold)) void report(int n) { sink(n); puts("cold"); }

int throws(int n) {
	try {
		if (n > 100) throw n;
		return chain(n);
	} catch (int e) {
		report(e);
		return second(e);
	}
}

template <class T> __attribute__((noinline)) T apply(T (*f)(T), T v) { return f(v); }

} // namespace outer

int main(int argc, char **) {
	outer::Box<int> a(argc);
	outer::Box<long> b(argc);
	outer::Square s(argc);
	int sum = a.as<int>() + (int)b.as<long>() + s.area(argc);
	return sum + outer::throws(argc) + outer::apply<int>(outer::chain, argc);
}

extern "C" __attribute__((noinline)) void sink(int n) { asm volatile("" : : "r"(n)); }
