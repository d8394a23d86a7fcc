{ pascal CALLS: one thread without a thread pointer, as Free Pascal makes it. It calls leaf CALLS times and nest a
  tenth as often, which calls leaf, after a line on stdin. "counted" is printed when all are made. }
program pascal;
{$mode objfpc}
uses SysUtils;

function leaf(x: longint): longint;
begin
  leaf := x * 3 + 1;
end;

function nest(x: longint): longint;
begin
  nest := leaf(x xor 5) + 7;
end;

var
  i, calls: longint;
  sum: int64;
  line: string;
begin
  calls := StrToInt(ParamStr(1));
  writeln('ready'); flush(output);
  readln(line);
  sum := 0;
  for i := 1 to calls do sum := sum + leaf(i);
  for i := 1 to calls div 10 do sum := sum + nest(i);
  writeln('counted ', sum); flush(output);
  readln(line);
  writeln('pascal ok');
end.
