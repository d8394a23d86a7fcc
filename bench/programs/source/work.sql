WITH RECURSIVE t(n, a, b) AS (VALUES (0, 0::numeric, 1::numeric) UNION ALL SELECT n + 1, b, a + b FROM t WHERE n < 200)
SELECT n, a FROM t WHERE n % 20 = 0;
CREATE TEMP TABLE words AS SELECT i, substr(md5(i::text), 1, 4) AS w FROM generate_series(1, 6000) i;
CREATE INDEX ON words (w);
ANALYZE words;
SELECT w, count(*) FROM words GROUP BY w HAVING count(*) > 1 ORDER BY 2 DESC, 1 LIMIT 5;
SELECT count(*), sum(a.i) FROM words a JOIN words b ON a.w = b.w AND a.i < b.i;
SELECT i, lag(w) OVER (ORDER BY w, i), rank() OVER (PARTITION BY left(w, 1) ORDER BY w DESC) FROM words ORDER BY i LIMIT 5;
SELECT jsonb_agg(jsonb_build_object('w', w, 'n', i) ORDER BY i) -> 3 FROM words WHERE i < 50;
SELECT count(*) FROM words WHERE w ~ '^[a-f]+[0-9]{2}$';
CREATE FUNCTION pg_temp.fails(n int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF n = 0 THEN RETURN 1 / n; END IF;
	RETURN pg_temp.fails(n - 1) + 1;
EXCEPTION WHEN division_by_zero THEN RETURN n;
END $$;
SELECT sum(pg_temp.fails(i % 10)) FROM generate_series(1, 40) i;
SELECT 1 / 0;
UPDATE words SET w = reverse(w) WHERE i % 3 = 0;
DELETE FROM words WHERE i % 7 = 0;
SELECT md5(string_agg(w, ',' ORDER BY i)) FROM words;
DROP FUNCTION pg_temp.fails(int);
DROP TABLE words;
