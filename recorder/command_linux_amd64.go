package recorder

import (
	"context"
	"errors"
)

func recordCommand(ctx context.Context, opt Options) (*Result, error) {
	return nil, errors.New("TODO")
}
