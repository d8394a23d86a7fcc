package realtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// S3 starts a real S3 service on loopback that ends with the test, names it in the environment as AWS' tools know it, and
// returns the name of an empty bucket.
func S3(t testing.TB) (bucket string) {
	t.Helper()
	service, err := StartS3(t.Context(), Tool(t, VersityGW), t.TempDir())
	Must(t, err)
	t.Cleanup(service.End)
	for name, value := range service.Environment {
		t.Setenv(name, value)
	}
	return service.Bucket
}

// An S3Service is a real S3 service on loopback.
type S3Service struct {
	Bucket      string
	Environment map[string]string // by which AWS' tools find it
	cmd         *exec.Cmd
}

// StartS3 starts the service with an empty bucket below dir, and returns when it answers.
func StartS3(ctx context.Context, gateway, dir string) (*S3Service, error) {
	const key, secret, bucket = "test-access", "test-secret-key", "symbols"
	if err := os.MkdirAll(filepath.Join(dir, "buckets", bucket), 0o700); err != nil { // a bucket is a folder
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + port
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		return nil, err
	}
	defer said.Close() // the process has its own
	cmd := exec.Command(gateway, "--access", key, "--secret", secret, "--port", address, "--quiet", "posix", filepath.Join(dir, "buckets"))
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &S3Service{bucket, map[string]string{
		"AWS_ENDPOINT_URL": "http://" + address, "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
		"AWS_ENDPOINT_URL_S3": "", "AWS_SESSION_TOKEN": "",
	}, cmd}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", nil)
		if err != nil {
			s.End()
			return nil, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close() // any answer is one
			return s, nil
		}
		if ctx.Err() != nil {
			s.End()
			text, _ := os.ReadFile(said.Name())
			return nil, fmt.Errorf("versitygw does not answer: %w\n%s", err, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// End ends the service.
func (s *S3Service) End() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

// findVersityGW looks where go install puts it, too.
func findVersityGW() (string, error) {
	if path, err := findFirst(VersityGW, "versitygw"); err == nil {
		return path, nil
	}
	for _, variable := range []string{"GOBIN", "GOPATH"} {
		out, err := exec.Command("go", "env", variable).Output()
		if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
			if variable == "GOPATH" {
				dir = filepath.Join(dir, "bin")
			}
			if path, err := findFirst(VersityGW, filepath.Join(dir, "versitygw")); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%w: %s", ErrMissing, VersityGW)
}
