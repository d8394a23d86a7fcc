package demangle

import (
	"math"
	"strconv"
	"strings"
)

// float writes a floating-point literal as C's %a does, for only that is exact.
func (w *cppPrinter) float(digits string, of byte) {
	switch of {
	case 'f':
		bits, err := strconv.ParseUint(digits, 16, 32)
		if err != nil {
			w.over = true
			return
		}
		w.write(hexFloat(float64(math.Float32frombits(uint32(bits)))) + "f")
	case 'd':
		bits, err := strconv.ParseUint(digits, 16, 64)
		if err != nil {
			w.over = true
			return
		}
		w.write(hexFloat(math.Float64frombits(bits)))
	case 'e':
		w.write(hexLongDouble(digits) + "L")
	}
}

// hexFloat writes an exponent without the zero that Go puts before it, and names as C does.
func hexFloat(v float64) string {
	switch {
	case math.IsNaN(v) && math.Signbit(v):
		return "-nan"
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
	}
	text := strconv.FormatFloat(v, 'x', -1, 64)
	at := strings.IndexByte(text, 'p')
	mantissa, exponent := text[:at], text[at+1:]
	if exponent[1] == '0' && len(exponent) == 3 {
		exponent = exponent[:1] + exponent[2:]
	}
	return mantissa + "p" + exponent
}

// hexLongDouble writes x86's 80 bits: sign and exponent, and 64 bits of which the first is not
// implied (Intel SDM Volume 1, 4.2.2). C's libraries write four bits before the point.
func hexLongDouble(digits string) string {
	head, err := strconv.ParseUint(digits[:4], 16, 16)
	mantissa, err2 := strconv.ParseUint(digits[4:], 16, 64)
	if err != nil || err2 != nil {
		return digits
	}
	sign := ""
	if head&0x8000 != 0 {
		sign = "-"
	}
	const bias = 16383
	exponent := int(head&0x7fff) - bias
	switch {
	case mantissa == 0:
		return sign + "0x0p+0"
	case exponent == bias+1 && mantissa<<1 == 0:
		return sign + "inf"
	case exponent == bias+1:
		return sign + "nan"
	case exponent == -bias:
		exponent++
	}
	text := strings.TrimRight(strconv.FormatUint(mantissa|1<<63, 16), "0")
	if mantissa < 1<<63 {
		text = "0" + strings.TrimRight(strconv.FormatUint(mantissa|1<<63, 16)[1:], "0")
	}
	if text = text[:1] + "." + text[1:]; strings.HasSuffix(text, ".") {
		text = text[:1]
	}
	exponent -= 3
	plus := ""
	if exponent >= 0 {
		plus = "+"
	}
	return sign + "0x" + text + "p" + plus + strconv.Itoa(exponent)
}
