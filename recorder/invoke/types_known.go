package invoke

import "strings"

// knownResults are the types of results of functions of C libraries, which seldom have debug information.
var knownResults = func() map[string]string {
	out := map[string]string{}
	for kind, names := range map[string]string{
		"int": `malloc_trim mallopt malloc_info getpid getppid gettid getpgrp getpgid getsid tcgetpgrp atoi abs puts putchar printf fprintf dprintf
			sprintf snprintf fflush fclose fputs fputc putc ungetc setvbuf remove rename raise kill killpg tgkill open openat creat close dup dup2 dup3
			access faccessat chdir fchdir unlink rmdir mkdir chmod fchmod chown fsync fdatasync ftruncate truncate isatty fcntl ioctl pipe pipe2 socket
			bind listen shutdown setsockopt getsockopt setenv unsetenv putenv clearenv system usleep nanosleep sched_yield sched_getcpu setpriority
			getpriority nice mprotect munmap madvise mlock munlock mlockall munlockall msync getrusage getrlimit setrlimit prctl dlclose dladdr
			pthread_setname_np pthread_getname_np pthread_kill pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock strcmp strncmp strcasecmp
			strncasecmp memcmp toupper tolower isalpha isdigit rand random_r atexit clock_gettime gettimeofday inotify_init eventfd epoll_create
			epoll_create1 timerfd_create gethostname uname sysinfo getpagesize feof ferror fileno backtrace mcheck_check_all`,
		"uint":  "getuid geteuid getgid getegid sleep alarm umask gnu_dev_major gnu_dev_minor if_nametoindex",
		"long":  "atol atoll labs llabs strtol strtoll time sysconf pathconf random lrand48 mrand48 ftell ftello read write pread pwrite readlink lseek times clock fpathconf",
		"ulong": "strlen strnlen strspn strcspn strtoul strtoull fread fwrite malloc_usable_size strftime confstr pthread_self",
		"str": `getenv secure_getenv strerror strsignal strerrorname_np strerrordesc_np sigabbrev_np sigdescr_np setlocale gnu_get_libc_version
			gnu_get_libc_release getcwd get_current_dir_name ttyname getlogin ctime asctime strchr strrchr strstr strcasestr strpbrk strdup strndup
			dlerror basename dirname realpath nl_langinfo gettext crypt inet_ntoa strtok`,
		"ptr": `malloc calloc realloc memalign aligned_alloc valloc mmap mmap64 mremap sbrk fopen fdopen freopen popen dlopen dlsym dlvsym environ
			memcpy memmove memset memchr localeconv localtime gmtime opendir signal errno_location`,
		"void":   "free malloc_stats perror sync srand srandom srand48 rewind clearerr setbuf closelog openlog syslog tzset bzero mtrace muntrace backtrace_symbols_fd",
		"double": "atof strtod drand48 sin cos tan asin acos atan atan2 exp exp2 log log2 log10 pow sqrt cbrt floor ceil round trunc fabs fmod hypot difftime",
		"float":  "strtof sinf cosf tanf expf logf powf sqrtf floorf ceilf roundf fabsf",
	} {
		for _, n := range strings.Fields(names) {
			out[n] = kind
		}
	}
	return out
}()

// knownResult is the type of the result of a C library's function, "" when it isn't known.
func knownResult(image, function string) string {
	if !isCLibrary(image) && !strings.HasPrefix(image, "libm.") && !strings.HasPrefix(image, "libm-") {
		return ""
	}
	return knownResults[strings.TrimSuffix(strings.TrimLeft(function, "_"), "64")]
}
