package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// S3 is a Storage below a prefix in a bucket. What is written at the same time by several is decided by conditional writes
// (If-None-Match, If-Match), which the service must know.
type S3 struct {
	client *minio.Client
	bucket string
	prefix string // "" or with a slash at its end
	temp   string // folder of Temps
}

// The metadata of objects.
const (
	metaSHA256 = "Callreel-Sha256"
	metaName   = "Callreel-Name"
)

// requestTimeout bounds a request to S3 that moves no object's bytes, and the wait for the first of others.
const requestTimeout = 30 * time.Second

// openS3 opens "bucket/prefix" with the endpoint, region and keys that the environment names as it does for AWS' own tools:
// AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION or AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
// AWS_SESSION_TOKEN, or else AWS_SHARED_CREDENTIALS_FILE with AWS_PROFILE, or else the machine's role.
func openS3(place, temp string) (*S3, error) {
	bucket, prefix, _ := strings.Cut(place, "/")
	if bucket == "" {
		return nil, fmt.Errorf("storage: s3://%s names no bucket", place)
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		if err := checkKey(prefix); err != nil {
			return nil, err
		}
		prefix += "/"
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	text := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3."+region+".amazonaws.com")
	endpoint, err := url.Parse(text)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("storage: %q is no endpoint of S3: want http://HOST or https://HOST", text)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}},
		}),
		Secure: endpoint.Scheme == "https", Region: region, MaxRetries: 3,
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: requestTimeout, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 64,
			DisableCompression: true, // the bytes are to be those that were put
		},
	})
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return &S3{client, bucket, prefix, temp}, nil
}

// String is the place as a user names it.
func (s *S3) String() string { return "s3://" + path.Join(s.bucket, s.prefix) }

// Path implements Storage.
func (s *S3) Path(string) string { return "" }

// Temp implements Storage.
func (s *S3) Temp() (*Temp, error) { return NewTemp(s.temp) }

// fault makes an error of the service's one of this package.
func fault(key string, err error) error {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		switch {
		case answer.Code == "NoSuchBucket":
			return fmt.Errorf("storage: bucket %s: %w", answer.BucketName, err)
		case answer.StatusCode == http.StatusNotFound || answer.Code == "NoSuchKey":
			return absent(key)
		// 409: another conditional write to the key is under way (Amazon S3, PutObject).
		case answer.StatusCode == http.StatusPreconditionFailed || answer.StatusCode == http.StatusConflict:
			return conflict(key)
		}
	}
	return fmt.Errorf("storage: %s: %w", key, err)
}

func (s *S3) describe(key string, o *minio.ObjectInfo) Info {
	return Info{
		Key: key, Size: o.Size, Modified: o.LastModified, Tag: tag(o.ETag),
		Meta: Meta{SHA256: o.UserMetadata[metaSHA256], Name: o.UserMetadata[metaName]},
	}
}

// tag leaves of an ETag what may be a part of a file's name.
func tag(etag string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' {
			return r
		}
		return -1
	}, etag)
}

// Stat implements Storage.
func (s *S3) Stat(ctx context.Context, key string) (Info, error) {
	if err := checkKey(key); err != nil {
		return Info{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	o, err := s.client.StatObject(ctx, s.bucket, s.prefix+key, minio.StatObjectOptions{})
	if err != nil {
		return Info{}, fault(key, err)
	}
	return s.describe(key, &o), nil
}

// Open implements Storage. It begins to read, so that an object that is read from its start costs one request.
func (s *S3) Open(ctx context.Context, key string) (Object, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	o := &s3Object{s: s, ctx: ctx}
	body, info, err := s.get(ctx, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	o.info, o.body = info, body
	return o, nil
}

// get begins to read an object.
func (s *S3) get(ctx context.Context, key string, opts minio.GetObjectOptions) (io.ReadCloser, Info, error) {
	core := minio.Core{Client: s.client}
	body, o, _, err := core.GetObject(ctx, s.bucket, s.prefix+key, opts)
	if err != nil {
		return nil, Info{}, fault(key, err)
	}
	return body, s.describe(key, &o), nil
}

// Put implements Storage.
func (s *S3) Put(ctx context.Context, key string, t *Temp, m Meta, replace string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	size, err := t.Size()
	if err != nil {
		return err
	}
	// One request, so that the object is there whole or not at all, and the condition holds for all of it.
	opts := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream", UserMetadata: map[string]string{}}
	if m.SHA256 != "" {
		opts.UserMetadata[metaSHA256] = m.SHA256
	}
	if m.Name != "" && strings.IndexFunc(m.Name, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
		opts.UserMetadata[metaName] = m.Name
	}
	if replace == "" {
		opts.SetMatchETagExcept("*")
	} else {
		opts.SetMatchETag(replace)
	}
	if _, err := s.client.PutObject(ctx, s.bucket, s.prefix+key, io.NewSectionReader(t, 0, size), size, opts); err != nil {
		return fault(key, err)
	}
	return nil
}

// Remove implements Storage.
func (s *S3) Remove(ctx context.Context, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.client.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{}); err != nil {
		return fault(key, err)
	}
	return nil
}

// List implements Storage.
func (s *S3) List(ctx context.Context, prefix string, each func(Info) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return fault(prefix, o.Err)
		}
		key, ok := strings.CutPrefix(o.Key, s.prefix)
		if !ok || checkKey(key) != nil {
			continue
		}
		if err := each(s.describe(key, &o)); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Sweep implements Storage. Objects are written by one request each, so that there is nothing to remove.
func (s *S3) Sweep(context.Context, time.Duration) (int, error) { return 0, nil }
