package arguments

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// Condition is one for stubs. Of a number in a register, see [probe.Condition.Possible], it costs next to nothing; what stands in memory takes a system call.
func (s *Signature) Condition(c *Condition) (k stub.Condition, err error) {
	err = s.catchPanics(func() error {
		if s.golang {
			return fmt.Errorf("%w on calls of Go functions", errNoCondition)
		}
		v, err := s.resolve(s.params, &c.Value, false)
		if err != nil {
			return err
		}
		if v.t == nil { // a register
			k.Value = v.p.pieces[0].operand
			k.Value.Signed = c.Value.Format != 'u' && c.Value.Format != 'x'
			v.t = &Type{Kind: KindInt, Size: 8}
		} else if k.Value, err = s.conditionValue(v); err != nil {
			return err
		}
		k.Comparison = c.Comparison
		k.With, err = v.t.literal(c.Literal, k.Value.Size, k.Value.Signed)
		return err
	})
	if err != nil {
		return k, fmt.Errorf("%s: %w", c.Text, err)
	}
	return k, nil
}

// errNoCondition says that stubs have no code for a condition.
var errNoCondition = errors.New("there are no conditions")

// conditionValue is the operand of a value that conditions may be on.
func (s *Signature) conditionValue(v value) (stub.Operand, error) {
	switch v.t.Kind {
	case KindInt, KindChar:
		return v.p.number(v.t.Size, v.t.Kind == KindInt || v.t.Signed)
	case KindUint, KindBool, KindPointer:
		return v.p.number(v.t.Size, false)
	case KindEnum:
		return v.p.number(v.t.Size, v.t.Signed)
	}
	if v.p.why != "" {
		return stub.Operand{}, fmt.Errorf("%w: %s", ErrUnplaced, v.p.why)
	}
	return stub.Operand{}, fmt.Errorf("%w on values of type %q", errNoCondition, s.d.nameOf(v.t))
}

// literal reads a number that a value of the type is compared with.
func (t *Type) literal(text string, size uint8, signed bool) (int64, error) {
	switch text {
	case "true":
		return 1, nil
	case "false", "null", "NULL", "nullptr", "nil":
		return 0, nil
	}
	for v, name := range t.Enum {
		if name == text {
			return v, nil
		}
	}
	if len(text) >= 3 && text[0] == '\'' {
		if r, _, rest, err := strconv.UnquoteChar(text[1:], '\''); err == nil && rest == "'" && r < utf8.RuneSelf {
			return int64(r), nil
		}
	}
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		return 0, fmt.Errorf("%w: %q is no number, nor the name of a value", ErrSyntax, text)
	}
	low, high := big.NewInt(0), new(big.Int).SetUint64(math.MaxUint64>>(64-8*uint(size)))
	if signed {
		high.Rsh(high, 1)
		low.Not(high)
	}
	if n.Cmp(low) < 0 || n.Cmp(high) > 0 {
		return 0, fmt.Errorf("%w: %s is none of its values, which are %s to %s", ErrSyntax, text, low, high)
	}
	if n.IsInt64() {
		return n.Int64(), nil
	}
	return int64(n.Uint64()), nil
}
