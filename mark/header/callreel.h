/* callreel.h: what a program itself says, for callreel and for all else that knows SDT markers (bpftrace, perf, gdb, SystemTap).
 *
 * There is nothing to link and nothing to start. Each marker is one nop in the program and a note beside its code. A recorder that somebody
 * attaches turns the nop into a jump for as long as it records; nothing else ever happens.
 *
 *     CALLREEL_BEGIN("parse", size);  …  CALLREEL_END();     a span of this thread
 *     CALLREEL_SCOPE("parse", size);                         the same, to the end of the block
 *     CALLREEL_COUNTER("queue", n);                          a value that changes over time: an integer or a double
 *     CALLREEL_INSTANT("reload", CALLREEL_STR(path));        a moment
 *     CALLREEL_ASYNC_BEGIN("request", id);  …_STEP, …_END    a span that goes from thread to thread: title and id say which
 *     CALLREEL_FLOW_OUT("job", id);  …  CALLREEL_FLOW_IN     an arrow from one span to another
 *     if (CALLREEL_RECORDING()) …                            for what is dear to make ready
 *
 * A title is a string literal. In it %, { and } are written %%, %{ and %}; but gcc for arm64 has braces as they are. \173 and \175
 * are braces for all. Titles that are identifiers can be named in bpftrace and perf, too. The forms that end in _S take a pointer to a
 * string that is made at run time.
 *
 * Behind its title (and id) a marker may have arguments, eight values in all: integers, enums, pointers, doubles, and strings, which are
 * given as CALLREEL_STR(p). They are evaluated once, whether or not somebody records.
 *
 * C99 and C++11, gcc and clang, ELF on x86-64 and arm64. Elsewhere, and with CALLREEL_OFF defined, the macros are nothing: arguments are then
 * not evaluated. No library is needed, not even libc.
 */
#ifndef CALLREEL_H
#define CALLREEL_H

#include <stdint.h>

/* Spans. CALLREEL_END ends the innermost one that is open in the thread, CALLREEL_END_OF the innermost of that title. */
#define CALLREEL_BEGIN(...) CALLREEL_TITLED_("begin", __VA_ARGS__)       /* title[, arguments…] */
#define CALLREEL_BEGIN_S(...) CALLREEL_LATE_("begin_s", __VA_ARGS__)     /* pointer to the title[, arguments…] */
#define CALLREEL_END() CALLREEL_PLAIN_("end")
#define CALLREEL_END_OF(...) CALLREEL_TITLED_("end", __VA_ARGS__)        /* title[, arguments…] */
#define CALLREEL_END_OF_S(...) CALLREEL_LATE_("end_s", __VA_ARGS__)      /* pointer to the title[, arguments…] */

/* Spans that no thread has: begin, steps and end may be in different ones. The id is an integer or a pointer. */
#define CALLREEL_ASYNC_BEGIN(...) CALLREEL_TITLED_("async_begin", __VA_ARGS__)     /* title, id[, arguments…] */
#define CALLREEL_ASYNC_STEP(...) CALLREEL_TITLED_("async_step", __VA_ARGS__)
#define CALLREEL_ASYNC_END(...) CALLREEL_TITLED_("async_end", __VA_ARGS__)
#define CALLREEL_ASYNC_BEGIN_S(...) CALLREEL_LATE_("async_begin_s", __VA_ARGS__)   /* pointer to the title, id[, arguments…] */
#define CALLREEL_ASYNC_STEP_S(...) CALLREEL_LATE_("async_step_s", __VA_ARGS__)
#define CALLREEL_ASYNC_END_S(...) CALLREEL_LATE_("async_end_s", __VA_ARGS__)

/* Flows: what was caused here is worked on there. */
#define CALLREEL_FLOW_OUT(...) CALLREEL_TITLED_("flow_out", __VA_ARGS__)     /* title, id[, arguments…] */
#define CALLREEL_FLOW_IN(...) CALLREEL_TITLED_("flow_in", __VA_ARGS__)
#define CALLREEL_FLOW_OUT_S(...) CALLREEL_LATE_("flow_out_s", __VA_ARGS__)   /* pointer to the title, id[, arguments…] */
#define CALLREEL_FLOW_IN_S(...) CALLREEL_LATE_("flow_in_s", __VA_ARGS__)

#define CALLREEL_INSTANT(...) CALLREEL_TITLED_("instant", __VA_ARGS__)       /* title[, arguments…] */
#define CALLREEL_INSTANT_S(...) CALLREEL_LATE_("instant_s", __VA_ARGS__)     /* pointer to the title[, arguments…] */

/* Counters. An integer is taken as one of 64 bits with a sign, a float as a double; the _F forms take any number as a double. */
#define CALLREEL_COUNTER(title, value) CALLREEL_COUNTER_(title, CALLREEL_IS_REAL_(value), CALLREEL_BITS_(value))
#define CALLREEL_COUNTER_F(title, value) CALLREEL_COUNTER_(title, 1, CALLREEL_BITS_(CALLREEL_DOUBLE_(value)))
#define CALLREEL_COUNTER_S(pointer, value) CALLREEL_LATE_COUNTER_(pointer, CALLREEL_IS_REAL_(value), CALLREEL_BITS_(value))
#define CALLREEL_COUNTER_F_S(pointer, value) CALLREEL_LATE_COUNTER_(pointer, 1, CALLREEL_BITS_(CALLREEL_DOUBLE_(value)))

/* The thread is called what the string says. */
#define CALLREEL_THREAD_NAME(pointer) CALLREEL_LATE_("thread_name", pointer)

/* From here on nothing is recorded of the process, or something again, if a recorder is there. */
#define CALLREEL_PAUSE() CALLREEL_PLAIN_("pause")
#define CALLREEL_RESUME() CALLREEL_PLAIN_("resume")

/* The rest is how. */

#if defined(__GNUC__) && defined(__ELF__) && defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(CALLREEL_OFF)

/* Not 0 while somebody records markers of this executable or library, each of which has one. */
#define CALLREEL_RECORDING() (__builtin_expect(callreel_semaphore != 0, 0))

#ifdef __cplusplus
extern "C" {
#endif
extern volatile uint16_t callreel_semaphore __attribute__((visibility("hidden")));
__attribute__((weak, used, visibility("hidden"), section(".probes"))) volatile uint16_t callreel_semaphore = 0;
#ifdef __cplusplus
}
#endif

/* The place itself. On x86-64 it is one nop of five bytes in one word of eight, so that one store makes a jump of it: it is moved, by one nop of
 * at most four bytes, only where it would reach beyond the word. */
#ifdef __x86_64__
#define CALLREEL_NOP_ ".p2align 3,,4\n990: .byte 0x0f,0x1f,0x44,0x00,0x00\n"
#else
#define CALLREEL_NOP_ "990: nop\n"
#endif

/* That what is written out below is long must not keep compilers from inlining. */
#if !defined(__clang__) && __GNUC__ >= 9 || defined(__clang__) && __clang_major__ >= 11
#define CALLREEL_ASM_ __asm__ __volatile__ __inline__
#else
#define CALLREEL_ASM_ __asm__ __volatile__
#endif

/* The note is that of SystemTap's sys/sdt.h, version 3: where the place is, where .stapsdt.base is, where the semaphore is, provider, name,
 * arguments. NAME and ARGUMENTS are directives that write text. Memory is clobbered: what a span's code does with memory stays in the span, and
 * strings are there when they are looked at. */
#define CALLREEL_SITE_(NAME, ARGUMENTS, ...)                                                                                                  \
	CALLREEL_ASM_(CALLREEL_NOP_                                                                                                               \
	              ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                                               \
	              ".balign 4\n"                                                                                                               \
	              ".4byte 992f-991f,994f-993f,3\n"                                                                                            \
	              "991: .asciz \"stapsdt\"\n"                                                                                                 \
	              "992: .balign 4\n"                                                                                                          \
	              "993: .8byte 990b,_.stapsdt.base,callreel_semaphore\n"                                                                      \
	              ".asciz \"callreel\"\n" NAME ".byte 0\n" ARGUMENTS ".byte 0\n"                                                              \
	              "994: .balign 4\n"                                                                                                          \
	              ".popsection\n"                                                                                                             \
	              ".ifndef _.stapsdt.base\n"                                                                                                  \
	              ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                                                     \
	              ".weak _.stapsdt.base\n"                                                                                                    \
	              ".hidden _.stapsdt.base\n"                                                                                                  \
	              "_.stapsdt.base: .space 1\n"                                                                                                \
	              ".size _.stapsdt.base,1\n"                                                                                                  \
	              ".popsection\n"                                                                                                             \
	              ".endif\n"                                                                                                                  \
	              :                                                                                                                           \
	              : __VA_ARGS__                                                                                                               \
	              : "memory")

/* The name is KIND__TITLE, and KIND_z12__TITLE where the first and the second argument are strings. */
#define CALLREEL_KIND_(kind) ".ascii \"" kind "\"\n"
#define CALLREEL_TITLE_(title) ".ascii \"__\"\n.ascii " CALLREEL_TEXT_(title) "\n"
#define CALLREEL_TEXT_(title) #title
#define CALLREEL_STRINGS_ ".if %c[callreel_z]\n.ascii \"_z\"\n.endif\n"
#define CALLREEL_DIGIT_(n) ".if (%c[callreel_z]>>" #n ")&1\n.ascii \"" #n "\"\n.endif\n"
#define CALLREEL_LITERAL_(title) [callreel_t] "n"(sizeof("" title)) /* a title must be one */

/* An argument is SIZE@PLACE, with a minus in front of the size if it has a sign, and f behind it if it is a float. They are in registers, or
 * constant: what is in memory would take a system call to read. */
#define CALLREEL_TEXT1_(n) ".ascii \"%c[callreel_s" #n "]\"\n.if (%c[callreel_f]>>" #n ")&1\n.ascii \"f\"\n.endif\n.ascii \"@%[callreel_a" #n "]\"\n"
#define CALLREEL_NEXT_(n) ".ascii \" \"\n" CALLREEL_TEXT1_(n)
#define CALLREEL_OPERAND_(n, x) [callreel_s##n] "n"(CALLREEL_SIZE_(x)), [callreel_a##n] "nr"(x)
#define CALLREEL_BIT_(n, x) (CALLREEL_IS_STRING_(x) << n)
#define CALLREEL_REAL_BIT_(n, x) (CALLREEL_IS_REAL_(x) << n)

/* For each number of arguments: the digits of those that are strings (D), the text (T), the operands (O), and which are strings (Z) and floats (F). */
#define CALLREEL_D1_ CALLREEL_DIGIT_(1)
#define CALLREEL_D2_ CALLREEL_D1_ CALLREEL_DIGIT_(2)
#define CALLREEL_D3_ CALLREEL_D2_ CALLREEL_DIGIT_(3)
#define CALLREEL_D4_ CALLREEL_D3_ CALLREEL_DIGIT_(4)
#define CALLREEL_D5_ CALLREEL_D4_ CALLREEL_DIGIT_(5)
#define CALLREEL_D6_ CALLREEL_D5_ CALLREEL_DIGIT_(6)
#define CALLREEL_D7_ CALLREEL_D6_ CALLREEL_DIGIT_(7)
#define CALLREEL_D8_ CALLREEL_D7_ CALLREEL_DIGIT_(8)
#define CALLREEL_T1_ CALLREEL_TEXT1_(1)
#define CALLREEL_T2_ CALLREEL_T1_ CALLREEL_NEXT_(2)
#define CALLREEL_T3_ CALLREEL_T2_ CALLREEL_NEXT_(3)
#define CALLREEL_T4_ CALLREEL_T3_ CALLREEL_NEXT_(4)
#define CALLREEL_T5_ CALLREEL_T4_ CALLREEL_NEXT_(5)
#define CALLREEL_T6_ CALLREEL_T5_ CALLREEL_NEXT_(6)
#define CALLREEL_T7_ CALLREEL_T6_ CALLREEL_NEXT_(7)
#define CALLREEL_T8_ CALLREEL_T7_ CALLREEL_NEXT_(8)
#define CALLREEL_O1_(a) CALLREEL_OPERAND_(1, a)
#define CALLREEL_O2_(a, b) CALLREEL_O1_(a), CALLREEL_OPERAND_(2, b)
#define CALLREEL_O3_(a, b, c) CALLREEL_O2_(a, b), CALLREEL_OPERAND_(3, c)
#define CALLREEL_O4_(a, b, c, d) CALLREEL_O3_(a, b, c), CALLREEL_OPERAND_(4, d)
#define CALLREEL_O5_(a, b, c, d, e) CALLREEL_O4_(a, b, c, d), CALLREEL_OPERAND_(5, e)
#define CALLREEL_O6_(a, b, c, d, e, f) CALLREEL_O5_(a, b, c, d, e), CALLREEL_OPERAND_(6, f)
#define CALLREEL_O7_(a, b, c, d, e, f, g) CALLREEL_O6_(a, b, c, d, e, f), CALLREEL_OPERAND_(7, g)
#define CALLREEL_O8_(a, b, c, d, e, f, g, h) CALLREEL_O7_(a, b, c, d, e, f, g), CALLREEL_OPERAND_(8, h)
#define CALLREEL_W1_(BIT, a) BIT(1, a)
#define CALLREEL_W2_(BIT, a, b) CALLREEL_W1_(BIT, a) | BIT(2, b)
#define CALLREEL_W3_(BIT, a, b, c) CALLREEL_W2_(BIT, a, b) | BIT(3, c)
#define CALLREEL_W4_(BIT, a, b, c, d) CALLREEL_W3_(BIT, a, b, c) | BIT(4, d)
#define CALLREEL_W5_(BIT, a, b, c, d, e) CALLREEL_W4_(BIT, a, b, c, d) | BIT(5, e)
#define CALLREEL_W6_(BIT, a, b, c, d, e, f) CALLREEL_W5_(BIT, a, b, c, d, e) | BIT(6, f)
#define CALLREEL_W7_(BIT, a, b, c, d, e, f, g) CALLREEL_W6_(BIT, a, b, c, d, e, f) | BIT(7, g)
#define CALLREEL_W8_(BIT, a, b, c, d, e, f, g, h) CALLREEL_W7_(BIT, a, b, c, d, e, f, g) | BIT(8, h)
#define CALLREEL_OPERANDS_(n, ...)                                                                        \
	[callreel_z] "n"(CALLREEL_W##n##_(CALLREEL_BIT_, __VA_ARGS__)), [callreel_f] "n"(CALLREEL_W##n##_(CALLREEL_REAL_BIT_, __VA_ARGS__)), \
	        CALLREEL_O##n##_(__VA_ARGS__)

/* Sites without arguments, sites whose title is in the name, and sites whose title comes late, as the first argument. */
#define CALLREEL_PLAIN_(kind) CALLREEL_SITE_(CALLREEL_KIND_(kind), "", [callreel_t] "n"(0))
#define CALLREEL_TITLED_(kind, ...) CALLREEL_PASTE_(CALLREEL_WITH, CALLREEL_MORE_(__VA_ARGS__))(kind, __VA_ARGS__)
#define CALLREEL_WITH0_(kind, title) CALLREEL_SITE_(CALLREEL_KIND_(kind) CALLREEL_TITLE_(title), "", CALLREEL_LITERAL_(title))
#define CALLREEL_WITHN_(n, kind, title, ...)                                                                                             \
	CALLREEL_SITE_(CALLREEL_KIND_(kind) CALLREEL_STRINGS_ CALLREEL_D##n##_ CALLREEL_TITLE_(title), CALLREEL_T##n##_, CALLREEL_LITERAL_(title), \
	               CALLREEL_OPERANDS_(n, __VA_ARGS__))
#define CALLREEL_WITH1_(kind, title, ...) CALLREEL_WITHN_(1, kind, title, __VA_ARGS__)
#define CALLREEL_WITH2_(kind, title, ...) CALLREEL_WITHN_(2, kind, title, __VA_ARGS__)
#define CALLREEL_WITH3_(kind, title, ...) CALLREEL_WITHN_(3, kind, title, __VA_ARGS__)
#define CALLREEL_WITH4_(kind, title, ...) CALLREEL_WITHN_(4, kind, title, __VA_ARGS__)
#define CALLREEL_WITH5_(kind, title, ...) CALLREEL_WITHN_(5, kind, title, __VA_ARGS__)
#define CALLREEL_WITH6_(kind, title, ...) CALLREEL_WITHN_(6, kind, title, __VA_ARGS__)
#define CALLREEL_WITH7_(kind, title, ...) CALLREEL_WITHN_(7, kind, title, __VA_ARGS__)
#define CALLREEL_WITH8_(kind, title, ...) CALLREEL_WITHN_(8, kind, title, __VA_ARGS__)
#define CALLREEL_LATE_(kind, ...) CALLREEL_PASTE_(CALLREEL_LATE, CALLREEL_MORE_(__VA_ARGS__))(kind, __VA_ARGS__)
#define CALLREEL_LATEN_(n, kind, ...) \
	CALLREEL_SITE_(CALLREEL_KIND_(kind) CALLREEL_STRINGS_ CALLREEL_D##n##_, CALLREEL_T##n##_, CALLREEL_OPERANDS_(n, __VA_ARGS__))
#define CALLREEL_LATE0_(kind, p) CALLREEL_LATEN_(1, kind, CALLREEL_POINTER_(p))
#define CALLREEL_LATE1_(kind, p, ...) CALLREEL_LATEN_(2, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_LATE2_(kind, p, ...) CALLREEL_LATEN_(3, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_LATE3_(kind, p, ...) CALLREEL_LATEN_(4, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_LATE4_(kind, p, ...) CALLREEL_LATEN_(5, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_LATE5_(kind, p, ...) CALLREEL_LATEN_(6, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_LATE6_(kind, p, ...) CALLREEL_LATEN_(7, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_LATE7_(kind, p, ...) CALLREEL_LATEN_(8, kind, CALLREEL_POINTER_(p), __VA_ARGS__)
#define CALLREEL_COUNTER_KIND_ ".ascii \"counter\"\n.if %c[callreel_f]\n.ascii \"f\"\n.endif\n"
#define CALLREEL_COUNTER_(title, is_real, bits)                                                                                        \
	CALLREEL_SITE_(CALLREEL_COUNTER_KIND_ CALLREEL_TITLE_(title), ".ascii \"-8@%[callreel_a1]\"\n", CALLREEL_LITERAL_(title), [callreel_f] "n"(is_real), \
	               [callreel_a1] "nr"(bits))
#define CALLREEL_LATE_COUNTER_(p, is_real, bits)                                                                           \
	CALLREEL_SITE_(CALLREEL_COUNTER_KIND_ CALLREEL_KIND_("_s"), ".ascii \"8@%[callreel_a1] -8@%[callreel_a2]\"\n", [callreel_f] "n"(is_real),            \
	               [callreel_a1] "nr"(CALLREEL_POINTER_(p)), [callreel_a2] "nr"(bits))

#define CALLREEL_MORE_(...) CALLREEL_NINTH_(__VA_ARGS__, 8_, 7_, 6_, 5_, 4_, 3_, 2_, 1_, 0_, )
#define CALLREEL_NINTH_(a, b, c, d, e, f, g, h, i, n, ...) n
#define CALLREEL_PASTE_(a, b) CALLREEL_PASTED_(a, b)
#define CALLREEL_PASTED_(a, b) a##b

#define CALLREEL_INLINE_ __attribute__((always_inline, unused))

/* What kinds of arguments there are. CALLREEL_SIZE_ is bytes, less than 0 for integers that have a sign. */
#ifdef __cplusplus

extern "C++" {
struct callreel_string;

template <typename T, bool = __is_enum(T)> struct callreel_integer { typedef T type; };
template <typename T> struct callreel_integer<T, true> { typedef __underlying_type(T) type; };
template <typename T> struct callreel_type {
	typedef typename callreel_integer<T>::type I;
	enum { size = I(-1) < I(1) ? -int(sizeof(T)) : int(sizeof(T)), real = 0, string = 0 };
};
template <> struct callreel_type<bool> { enum { size = 1, real = 0, string = 0 }; };
template <> struct callreel_type<float> { enum { size = 4, real = 1, string = 0 }; };
template <> struct callreel_type<double> { enum { size = 8, real = 1, string = 0 }; };
template <> struct callreel_type<long double> { enum { size = 16, real = 1, string = 0 }; }; /* of counters only */
template <typename T> struct callreel_type<T *> { enum { size = 8, real = 0, string = 0 }; };
template <> struct callreel_type<const callreel_string *> { enum { size = 8, real = 0, string = 1 }; };
template <typename T> callreel_type<T> callreel_type_of(T);

#define CALLREEL_SIZE_(x) int(decltype(callreel_type_of(x))::size)
#define CALLREEL_IS_REAL_(x) int(decltype(callreel_type_of(x))::real)
#define CALLREEL_IS_STRING_(x) int(decltype(callreel_type_of(x))::string)
#define CALLREEL_STR(p) callreel_str(p)
#define CALLREEL_POINTER_(p) callreel_pointer(p)
#define CALLREEL_BITS_(x) callreel_bits(x)
#define CALLREEL_DOUBLE_(x) static_cast<double>(x)

CALLREEL_INLINE_ inline const callreel_string *callreel_str(const void *p) noexcept { return static_cast<const callreel_string *>(p); }
CALLREEL_INLINE_ inline const char *callreel_pointer(const char *p) noexcept { return p; }
CALLREEL_INLINE_ inline int64_t callreel_bits(double v) noexcept {
	int64_t bits = 0;
	__builtin_memcpy(&bits, &v, sizeof bits);
	return bits;
}
CALLREEL_INLINE_ inline int64_t callreel_bits(float v) noexcept { return callreel_bits(double(v)); }
CALLREEL_INLINE_ inline int64_t callreel_bits(long double v) noexcept { return callreel_bits(double(v)); }
template <typename T> CALLREEL_INLINE_ inline int64_t callreel_bits(T v) noexcept { return static_cast<int64_t>(v); }

struct callreel_scope {
	CALLREEL_INLINE_ explicit callreel_scope(int) noexcept {}
	CALLREEL_INLINE_ ~callreel_scope() { CALLREEL_END(); }
	callreel_scope(const callreel_scope &) = delete;
	callreel_scope &operator=(const callreel_scope &) = delete;
};
} /* extern "C++" */

#define CALLREEL_SCOPE_(BEGIN, ...) \
	const callreel_scope CALLREEL_PASTE_(callreel_scope_, __LINE__)(__extension__({ BEGIN(__VA_ARGS__); 0; }))

#else /* C */

struct callreel_string;

#define CALLREEL_CLASS_(x) __builtin_classify_type(x) /* 1 to 4 integers, 5 pointers, 8 floats */
#define CALLREEL_IS_REAL_(x) (CALLREEL_CLASS_(x) == 8)
#define CALLREEL_IS_POINTER_(x) (CALLREEL_CLASS_(x) == 5)
#define CALLREEL_IS_STRING_(x) __builtin_types_compatible_p(__typeof__(x), const struct callreel_string *)
#define CALLREEL_NUMBER_(x) __builtin_choose_expr(CALLREEL_IS_POINTER_(x), 0ul, (x))
#define CALLREEL_INTEGER_(x) __builtin_choose_expr(CALLREEL_CLASS_(x) >= 1 && CALLREEL_CLASS_(x) <= 4, (x), 0ul)
#define CALLREEL_SIGN_(x) ((__typeof__(CALLREEL_INTEGER_(x)))-1 < (__typeof__(CALLREEL_INTEGER_(x)))1 ? -1 : 1)
#define CALLREEL_SIZE_(x) (CALLREEL_SIGN_(x) * (int)sizeof(__typeof__(CALLREEL_NUMBER_(x))))
#define CALLREEL_STR(p) ((const struct callreel_string *)(const void *)(p))
#define CALLREEL_POINTER_(p) callreel_pointer(p)
#define CALLREEL_DOUBLE_(x) ((double)(x))
#define CALLREEL_BITS_(x)                                                                                                      \
	__builtin_choose_expr(CALLREEL_IS_REAL_(x), callreel_bits((double)__builtin_choose_expr(CALLREEL_IS_REAL_(x), (x), 0.0)), \
	                      (int64_t)(x))

static __inline__ CALLREEL_INLINE_ const char *callreel_pointer(const char *p) { return p; }
static __inline__ CALLREEL_INLINE_ int64_t callreel_bits(double v) {
	int64_t bits = 0;
	__builtin_memcpy(&bits, &v, sizeof bits);
	return bits;
}
static __inline__ CALLREEL_INLINE_ void callreel_scope_end(const int *scope) {
	(void)scope;
	CALLREEL_END();
}

#define CALLREEL_SCOPE_(BEGIN, ...)                                                                                     \
	const int CALLREEL_PASTE_(callreel_scope_, __LINE__) __attribute__((cleanup(callreel_scope_end), unused)) = __extension__({ \
		BEGIN(__VA_ARGS__);                                                                                             \
		0;                                                                                                              \
	})

#endif

/* A span to the end of the block, however that is left. It is a declaration. */
#define CALLREEL_SCOPE(...) CALLREEL_SCOPE_(CALLREEL_BEGIN, __VA_ARGS__)
#define CALLREEL_SCOPE_S(...) CALLREEL_SCOPE_(CALLREEL_BEGIN_S, __VA_ARGS__)

#else /* there are no markers */

#define CALLREEL_RECORDING() 0
#define CALLREEL_STR(p) (p)
#define CALLREEL_PLAIN_(kind) ((void)0)
#define CALLREEL_TITLED_(kind, ...) ((void)0)
#define CALLREEL_LATE_(kind, ...) ((void)0)
#define CALLREEL_COUNTER_(...) ((void)0)
#define CALLREEL_LATE_COUNTER_(...) ((void)0)
#define CALLREEL_SCOPE(...) ((void)0)
#define CALLREEL_SCOPE_S(...) ((void)0)

#endif

#endif /* CALLREEL_H */
