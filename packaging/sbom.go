package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// A bom is the part of CycloneDX 1.6 that says what a Go program is made of (cyclonedx.org/docs/1.6/json).
type bom struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref     string     `json:"bom-ref"`
	Type    string     `json:"type"`
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Hashes  []hash     `json:"hashes,omitempty"`
	PURL    string     `json:"purl"`
	More    []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"` // hexadecimal
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// sbom lists the modules that Go wrote into the program, with versions and checksums, and Go's library.
func (r *release) sbom(binary, processor string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("modules: %w", err)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	self := component{
		Ref: packageURL(info.Main.Path, r.describe), Type: "application", Name: "callreel", Version: r.describe, PURL: packageURL(info.Main.Path, r.describe),
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, More: []property{{"callreel:processor", processor}},
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{{Ref: packageURL("std", version), Type: "library", Name: "std", Version: version, PURL: packageURL("std", version)}}
	for _, m := range info.Deps {
		part, err := moduleComponent(m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	all := dependency{Ref: self.Ref} // which module uses which isn't in the program
	for _, p := range parts {
		all.DependsOn = append(all.DependsOn, p.Ref)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(bom{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", SpecVersion: "1.6", SerialNumber: serial(sum), Version: 1,
		Metadata: metadata{r.date.Format(time.RFC3339), self}, Components: parts, Dependencies: []dependency{all},
	})
	return b.Bytes(), err
}

// moduleComponent has the module that was really used, and go.sum's checksum of it: h1 is a SHA-256, of the list of the
// module's files and theirs.
func moduleComponent(m *debug.Module) (component, error) {
	for m.Replace != nil {
		m = m.Replace
	}
	c := component{Ref: packageURL(m.Path, m.Version), Type: "library", Name: m.Path, Version: m.Version, PURL: packageURL(m.Path, m.Version)}
	text, found := strings.CutPrefix(m.Sum, "h1:")
	sum, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(sum) != sha256.Size {
		return component{}, fmt.Errorf("module %s %s: checksum %q is no SHA-256 of go.sum", m.Path, m.Version, m.Sum)
	}
	c.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum)}}
	return c, nil
}

// packageURL names a module as github.com/package-url does.
func packageURL(module, version string) string {
	parts := strings.Split(module, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "pkg:golang/" + strings.Join(parts, "/") + "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
}

// serial is a UUID (RFC 9562 §5.8) of the program's checksum: other bytes, another number.
func serial(sum [sha256.Size]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16])
}
