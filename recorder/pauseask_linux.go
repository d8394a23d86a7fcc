package recorder

import "context"

// pauseRequest asks a recorder to pause, or to go on.
type pauseRequest struct {
	By     string `json:"by"`
	Resume bool   `json:"resume,omitempty"`
}

// askedToPause answers who asks for it.
func (r *recording) askedToPause(q *pauseRequest) (a controlAnswer) {
	by := q.By
	if by != "page" {
		by = "command"
	}
	var err error
	if q.Resume {
		err = r.resume()
	} else {
		err = r.pause(by)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// AskToPause asks the recorder of a process to record nothing until it is asked to go on, and returns when that is in force. by is who asks:
// "command" or "page". Who is paused already stays so. An error wraps ErrNoRecorder where there is none.
func AskToPause(ctx context.Context, pid int, by string) error {
	_, err := ask(ctx, pid, controlRequest{Pause: &pauseRequest{By: by}})
	return err
}

// AskToResume asks the recorder of a process to go on, and returns when that is in force. A program that has paused its recording itself stays
// paused until it goes on.
func AskToResume(ctx context.Context, pid int) error {
	_, err := ask(ctx, pid, controlRequest{Pause: &pauseRequest{Resume: true}})
	return err
}
