package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// overTLS encrypts what a listener accepts.
func overTLS(l net.Listener, certificate, key string) (net.Listener, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("callreel symbols serve: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), nil
}
